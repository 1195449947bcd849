"""The gallery and the pages of the guide run as they stand; `make docs` shows what they print and draw."""

import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parents[1]
LONG = ("plot_compare", "plot_mnist_patches", "plot_novelty", "plot_lookahead")
"""They train networks or look ahead, and run in `make docs` only; that of MNIST downloads, and is run nowhere."""
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("plot_*.py")) if path.stem not in LONG]
PAGES = [
    path
    for path in sorted((ROOT / "docs").glob("*/*.md"))
    if path.read_text(encoding="utf-8").startswith("---\nrun: true\n")
]


def run(code, where):
    """Runs in a name space of its own, as a program does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, str(where), "exec"), {"__name__": "__main__"})


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Pictures are drawn without a screen, and files are written into a folder of the test."""
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context({"backend": "agg", "figure.max_open_warning": 0}):
        yield
    plt.close("all")


def test_there_are_enough_examples():
    assert len(EXAMPLES) + len(LONG) >= 18
    assert len(PAGES) >= 14


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(path):
    import matplotlib.pyplot as plt

    text = path.read_text(encoding="utf-8")
    run(text, path)
    assert plt.get_fignums() or "flowchart" in text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_runs(path):
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    run("\n".join(blocks), path)
