"""JSON of a stranger is read in proportion to its size, and only if it is plain."""

import subprocess
import sys

import pytest

from askwise.errors import InvalidInput
from askwise.persistence.strict_json import read_json, write_json

HOSTILE = r"""
import resource
from askwise.errors import InvalidInput
from askwise.persistence.strict_json import read_json

texts = [rb'\"' * 2_000_000, b'"' + rb'\"' * 2_000_000, b'"' * 4_000_000]
texts += [b'["a' + rb'\\' * 2_000_000, b'{"' * 2_000_000]
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))  # seconds of work, not of a clock; quadratic work needs hours
for text in texts:
    try:
        read_json(text, "file")
    except InvalidInput:
        continue
    raise SystemExit("taken")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the work of a process is limited by POSIX")
def test_the_work_grows_in_proportion_to_the_size():
    done = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"


def test_what_is_not_plain_is_refused_with_the_name_of_the_file():
    for content, message in (
        (b'{"a": 1, "a": 2}', "a key is repeated"),
        (b'[{"a": {"b": 1, "c": 2, "b": 1}}]', "a key is repeated"),
        (b'{"a": 1, "\\u0061": 2}', "a key is repeated"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b"[-Infinity]", "-Infinity is not a number"),
        (b'{"a": 1', "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "nested more than 100 levels"),
        (b'{"a":' * 100_000, "nested more than 100 levels"),
        (b"[" * 101 + b"]" * 101, "nested more than 100 levels"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "nested more than 100 levels"),
    ):
        with pytest.raises(InvalidInput, match=rf"^state\.json .*{message}"):
            read_json(content, "state.json")


def test_brackets_in_texts_are_no_nesting():
    value = {"a": "[{" * 500, "b": ['\\"[' * 500, {"c": [1.5, None, True, "ä"]}]}
    assert read_json(write_json(value), "file") == value
    deep = b"[" * 100 + b"]" * 100
    assert write_json(read_json(deep, "file")) == deep
