"""``python -m askwise_bench``: the commands where askwise-bench is not installed but on the path."""

from askwise_bench.cli import app

if __name__ == "__main__":
    app(prog_name="askwise")
