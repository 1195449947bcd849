"""Progress on a real terminal: bars with what is left on standard error, nested ones below each other, else nothing."""

import os
import pty
import re
import subprocess
import sys

CODE = """
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from askwise import DynamicFeatureSelector
X, y = load_wine(return_X_y=True, as_frame=True)
model = LogisticRegression(max_iter=10_000).fit(X[::2], y[::2])
selector = DynamicFeatureSelector(model, epistemic=None, calibration=None, random_state=0).fit(X[::2], y[::2])
selector.costs_
selector.progress = {progress}
selector.evaluate(X[1::2], y[1::2])
selector.savings(X[1::2])
selector.calibrate_stop(X[1::2], agreement=0.9)
"""
NESTED = """
from askwise.progress import track
for _ in track(range(3), "outer", 3):
    for _ in track(range(4), "inner", 4):
        pass
"""


def on_terminal(code: str) -> tuple[str, str]:
    """What a program writes to standard output, and to a terminal that is its standard error."""
    terminal, own = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=own, env=environment)
    os.close(own)
    said = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    assert process.stdout is not None
    out = process.stdout.read().decode()
    assert process.wait() == 0, said.decode()
    return out, said.decode()


def test_bars_show_how_much_there_is_and_how_much_is_left():
    out, said = on_terminal(CODE.format(progress='"auto"'))
    assert out == ""
    assert "acquiring" in said
    assert re.search(r"\d+/14", said)  # the start and thirteen features
    assert re.search(r"[-\d]:[-\d]{2}:[-\d]{2}", said)  # the time that is left, or dashes before it can be told


def test_no_bars_where_none_are_wanted():
    assert on_terminal(CODE.format(progress=False)) == ("", "")
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(progress='"auto"')], check=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_bars_within_bars_share_a_terminal():
    _, said = on_terminal(NESTED)
    assert "outer" in said
    assert "inner" in said
