"""Time of `import askwise` and of its main class, as ratios to `import sklearn.ensemble`, in fresh processes.

python benchmarks/import_time.py [--repeats 7]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

STATEMENTS = {
    "import sklearn.ensemble": "import sklearn.ensemble",
    "import askwise": "import askwise",
    "from askwise import DynamicFeatureSelector": "from askwise import DynamicFeatureSelector",
}
TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(options.repeats):
        for name, statement in STATEMENTS.items():
            command = [sys.executable, "-c", TIMED.format(statement)]
            seconds[name].append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    base = statistics.median(seconds["import sklearn.ensemble"])
    for name, measured in seconds.items():
        print(f"{statistics.median(measured) / base:5.2f} x   {name}")


if __name__ == "__main__":
    main()
