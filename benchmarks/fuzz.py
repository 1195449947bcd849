"""Thousands of calls made up from the OpenAPI description: does the server ever fail?

python -m benchmarks.fuzz [--calls 5000] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.web.conftest import save_selector
from tests.web.fuzzing import Fuzzer

import askwise
from askwise.web.app import create_app
from askwise.web.database import migrate
from askwise.web.settings import Settings


def main() -> None:
    """Print how often each status was answered; exit code 1 if one is 500 or more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place) / "selector"
        save_selector(folder)
        settings = Settings(str(folder), f"sqlite:///{place}/cases.sqlite3", rate=0)
        migrate(settings.url)
        selector = askwise.load(folder)
        fuzzer = Fuzzer(create_app(selector, settings), list(selector.features_), options.seed)
        start = time.perf_counter()
        fuzzer.run(options.calls)
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(fuzzer.statuses.items()))
    seconds = time.perf_counter() - start
    print(f"{fuzzer.statuses.total()} calls in {seconds:.0f} s; {statuses}; 5xx: {len(fuzzer.failures)}")
    print("\n".join(fuzzer.failures))
    sys.exit(bool(fuzzer.failures))


if __name__ == "__main__":
    main()
