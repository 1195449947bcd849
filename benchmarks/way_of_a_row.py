"""Through how many functions and files a row goes: calls inside the package, files, switches between files.

    python benchmarks/way_of_a_row.py [--where]

Counted are calls of functions whose code lives in the package, the files they live in, and how often a call is in
another file than the one before it. Comprehensions and generator expressions belong to their function, as in newer
versions of Python. The counts are the same on every machine. `--where` adds the functions called most, and the files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import askwise
from askwise import DynamicFeatureSelector

PACKAGE = str(Path(askwise.__file__).parent)
INLINE = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
BUDGET = 4.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", action="store_true", help="also print the functions called most, and the files")
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
    session, medians = selector.start(budget=BUDGET), X_test.median().to_dict()
    session.answer("alcohol", medians["alcohol"])
    report("suggest", session.suggest, where)
    suggested = session.suggest()
    assert suggested is not None
    report("answer", lambda: session.answer(suggested.feature, medians[suggested.feature]), where)
    report("acquire, 5 rows", lambda: selector.acquire(X_test[:5], budget=BUDGET), where)
    with tempfile.TemporaryDirectory() as folder:
        report_http(selector, medians, Path(folder), where)


def report_http(selector: DynamicFeatureSelector, values: dict[Any, float], folder: Path, where: bool) -> None:
    """The second answer of a case through the web application, as a client sends it."""
    from starlette.testclient import TestClient

    from askwise.web.app import create_app
    from askwise.web.database import migrate
    from askwise.web.settings import Settings

    selector.save(folder / "selector")
    settings = Settings(str(folder / "selector"), f"sqlite:///{folder}/cases.sqlite3", rate=0)
    migrate(settings.url)
    threading.setprofile(count)  # for the threads of the application, which start now
    with TestClient(create_app(askwise.load(folder / "selector"), settings), base_url="http://localhost") as client:

        def answer() -> None:
            feature = cases[-1]["report"]["suggestion"]
            body = {"type": "answer", "feature": feature, "value": values[feature], "version": cases[-1]["version"]}
            response = client.post(f"/api/cases/{cases[-1]['id']}/events", json={**body, "confirmed": True})
            response.raise_for_status()
            cases.append(response.json())

        cases = [client.post("/api/cases", json={"label": "one", "budget": BUDGET}).json()]
        answer()
        report("answer over HTTP", answer, where)
    threading.setprofile(None)


called: list[tuple[str, str]] = []
"""The functions called since `report` has emptied it, by file and name."""


def count(frame: Any, event: str, _: Any) -> None:
    """Note a call; for `sys.setprofile` and `threading.setprofile`."""
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name not in INLINE:
        called.append((code.co_filename, code.co_qualname))


def report(name: str, run: Callable[[], Any], where: bool) -> None:
    """Print the counts of one call."""
    called.clear()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    found = list(called)
    files = Counter(file for file, _ in found)
    switches = sum(one[0] != other[0] for one, other in pairwise(found))
    print(f"{name:28} {len(found):7} {len(files):6} {switches:9}", flush=True)
    if where:
        for (file, function), times in Counter(found).most_common(40):
            print(f"    {times:6}  {Path(file).relative_to(PACKAGE)}  {function}")
        print("    files: " + ", ".join(f"{Path(file).relative_to(PACKAGE)} {n}" for file, n in files.most_common()))


if __name__ == "__main__":
    main()
