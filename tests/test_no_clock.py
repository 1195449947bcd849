"""No result depends on a clock: no code that computes one reads it, and wild clocks change nothing."""

import ast
import datetime
import json
import random
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askwise import DynamicFeatureSelector

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src", ROOT / "research" / "src")
ALLOWED = {
    "askwise/cli/monitor.py": "reads the time that --since is given",
    "askwise_bench/cli.py": "how long a run took, printed at its end",
    "askwise_bench/grid/trials.py": "how long a trial took, a column of the results",
    "askwise_bench/studies/rivals.py": "how long fitting and answering took, a column of the results",
    "askwise/web/app.py": "waits until the port is open before the browser is",
    "askwise/web/guard.py": "duration of a request, for metrics",
    "askwise/web/logs.py": "time stamps of log lines",
    "askwise/web/callers.py": "requests per second that a client may make",
    "askwise/web/cases.py": "time stamps of a case's events, from which waiting and deadlines count",
    "askwise/web/service.py": "how many threads answer at once",
    "askwise/web/store.py": "time stamps of the audit trail",
}
"""Files that may read a clock, and what for; none of them computes a result."""
MODULES = {"time", "timeit", "datetime", "sched", "resource"}
CALLS = {"now", "utcnow", "today", "getloadavg", "times", "cpu_count", "process_cpu_count"}
"""Of classes and modules that are imported by another name: ``pd.Timestamp.now()``, ``os.times()``."""
CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")


def clock_uses(source: str) -> list[str]:
    """Imports of modules of clocks, and calls of methods that read one or the load of the machine."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Attribute) and node.attr in CALLS and not _of_prices(node):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Constant) and node.value in ("now", "today"):  # np.datetime64("now")
            found.append(repr(node.value))
    return found


def _of_prices(node: ast.Attribute) -> bool:
    """``prices.now(mask)`` is the price now, which depends on what is known."""
    owner = ast.unparse(node.value).split(".")[-1]
    return node.attr == "now" and owner in ("of(TIME)", "part", "prices", "prices_", "self", "weighed")


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import time as t",
        "from time import perf_counter",
        "from datetime import datetime",
        "import os\nos.times()",
        "import pandas as pd\npd.Timestamp.now()",
        'import numpy as np\nnp.datetime64("now")',
        "def f():\n    import timeit",
        "import os\nn = os.cpu_count()",
    ],
)
def test_a_clock_is_found(source):
    assert clock_uses(source)


def test_only_allowed_files_read_a_clock():
    files = {path.relative_to(source).as_posix(): path for source in SOURCES for path in source.rglob("*.py")}
    assert len(files) > 200
    found = {name: clock_uses(path.read_text(encoding="utf-8")) for name, path in sorted(files.items())}
    reading = {name: uses for name, uses in found.items() if uses}
    assert set(reading) - set(ALLOWED) == set(), reading
    assert set(ALLOWED) - set(reading) == set(), "no longer needed in the list of those allowed"


@pytest.fixture
def wild_clocks(monkeypatch):
    """Clocks that jump by years, forwards and back."""
    jumps = random.Random(0)

    def seconds():
        return jumps.uniform(1e9, 2e9)

    for name in CLOCKS:
        monkeypatch.setattr(time, name, seconds)
        monkeypatch.setattr(time, f"{name}_ns", lambda: int(1e9 * seconds()))
    own = datetime.datetime

    class Wild(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return own.fromtimestamp(seconds(), tz)

    monkeypatch.setattr(datetime, "datetime", Wild)


X, Y = load_wine(return_X_y=True, as_frame=True)
TRAIN, TEST = np.arange(0, len(Y), 2), np.arange(1, len(Y), 2)
MODELS = {
    "regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(10, random_state=0),
}


def everything(model, folder, **options):
    """What a fit gives, as plain data, and the bytes of its saved files."""
    owner = DynamicFeatureSelector(model, random_state=0, progress=False, **options)
    owner.fit(X.iloc[TRAIN], Y.iloc[TRAIN])
    partly = X.iloc[TEST].mask(np.random.default_rng(0).random((len(TEST), X.shape[1])) < 0.6)
    run = owner.acquire(X.iloc[TEST], budget=5)
    assert owner.calibration_ is not None
    numbers = {
        "temperatures": owner.calibration_.temperatures,
        "proba": owner.predict_proba(partly),
        "uncertainty": owner.uncertainty(partly).epistemic,
        "order": run.order,
        "steps": run.proba,
        "report": owner.adaptation_report_[["size", "before", "after"]].to_numpy(dtype=float),
    }
    owner.save(folder)
    files = {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return json.dumps(owner.choices_), numbers, files


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("prices", ["equal", "unequal"])
def test_clocks_that_jump_change_nothing(name, prices, tmp_path, request):
    costs = None if prices == "equal" else np.linspace(1, 3, X.shape[1])
    choices, numbers, files = everything(MODELS[name], tmp_path / "quiet", costs=costs)
    request.getfixturevalue("wild_clocks")
    assert time.perf_counter() != time.perf_counter()
    wild_choices, wild_numbers, wild_files = everything(MODELS[name], tmp_path / "wild", costs=costs)
    assert choices == wild_choices
    assert '"folds": 5, "refits": 0' in choices
    for part, values in numbers.items():
        assert_array_equal(values, wild_numbers[part], err_msg=part)
    assert files == wild_files
