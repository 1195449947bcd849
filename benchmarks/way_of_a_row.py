"""Through how many functions and files a row goes: calls inside the package, files, switches between files.

    python benchmarks/way_of_a_row.py [--where]

Counts calls of functions whose code lives in the package (generators count at each resumption, comprehensions do not
count as functions of their own where Python inlines them), the files they live in, and how often a call lands in
another file than the call before it. Counts are the same on every machine. `--where` adds the functions called most.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import askwise
from askwise import DynamicFeatureSelector

PACKAGE = str(Path(askwise.__file__).parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", action="store_true", help="also print the functions called most")
    where = parser.parse_args().where
    warnings.simplefilter("ignore")
    X, y = load_wine(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, _ = train_test_split(X, y, random_state=0, stratify=y)
    forest = RandomForestClassifier(n_estimators=100, random_state=0).fit(X_train, y_train)

    def fit(**options: Any) -> DynamicFeatureSelector:
        return DynamicFeatureSelector(forest, random_state=0, **options).fit(X_train, y_train)

    selector = fit()  # once before counting, so that modules are imported
    print(f"{'':28} {'calls':>7} {'files':>6} {'switches':>9}")
    report("fit, wine and forest", fit, where)
    report("fit without calibration", lambda: fit(calibration=None), where)
    session = selector.start(budget=4)
    session.answer(session.suggest().feature, 12.0)
    report("suggest", session.suggest, where)
    suggested = session.suggest()
    report("answer", lambda: session.answer(suggested.feature, float(X[suggested.feature].median())), where)
    report("acquire, 5 rows", lambda: selector.acquire(X_test[:5], budget=4), where)
    report_http(selector, where)


def report_http(selector: DynamicFeatureSelector, where: bool) -> None:
    """An answer through the web application, as a client sends it."""
    from starlette.testclient import TestClient

    from askwise.web.app import create_app

    with TestClient(create_app(selector)) as client:
        print(client.get("/api/model").status_code)


def report(name: str, run: Callable[[], Any], where: bool) -> None:
    """Print the counts of one call."""
    calls: Counter[tuple[str, str]] = Counter()
    switches, last = 0, ""

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal switches, last
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE):
            calls[file, frame.f_code.co_qualname] += 1
            switches += file != last and last != ""
            last = file

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    files = {file for file, _ in calls}
    print(f"{name:28} {calls.total():7} {len(files):6} {switches:9}", flush=True)
    if where:
        for (file, function), times in calls.most_common(40):
            print(f"    {times:6}  {Path(file).relative_to(PACKAGE)}  {function}")


if __name__ == "__main__":
    main()
