"""Folders that are read while they are written, by several at once, and by processes that are killed."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.persistence import cases
from tests.persistence.layout import version_of

import askwise
from askwise.locking import LockHeldError, file_lock
from askwise.persistence.folder import read_folder, write_folder

pytest.importorskip("safetensors")
pytest.importorskip("skops")

WRITER = """
import os, signal, sys, time
from pathlib import Path
from askwise.persistence.folder import read_folder, write_folder
first, second, target = map(Path, sys.argv[1:])
saved = [read_folder(first, None), read_folder(second, None)]

def save_for_ever():
    while True:
        for manifest, files in saved:  # as selector.save does it
            write_folder(target, manifest, files, None)

print("ready", flush=True)
for line in sys.stdin:  # seconds to live of a child that saves
    if line == "for ever\\n":
        save_for_ever()
    child = os.fork()
    if child == 0:
        save_for_ever()
    time.sleep(float(line))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("killed", flush=True)
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Folders of two selectors that predict otherwise, and what they predict for some rows."""
    place, found = tmp_path_factory.mktemp("two"), []
    for seed in range(2):
        X, y = cases.make_rows(seed=seed)
        model = DecisionTreeClassifier(max_depth=2 + seed, random_state=0).fit(X, y)
        selector = cases.selector(model, epistemic=None, policy="static", calibration=None).fit(X, y)
        selector.save(place / str(seed))
        found.append(selector.predict_proba(cases.make_rows(8, 3)[0]))
    assert not np.array_equal(*found)
    return place / "0", place / "1", found


@contextmanager
def writer(two, target):
    """A process that saves the two selectors in turn once it is told for how long, and a function that tells it."""
    command = [sys.executable, "-c", WRITER, str(two[0]), str(two[1]), str(target)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    told, answers = process.stdin, process.stdout
    assert told is not None
    assert answers is not None

    def tell(how_long):
        told.write(f"{how_long}\n")
        told.flush()
        return None if how_long == "for ever" else answers.readline()

    try:
        assert answers.readline() == "ready\n"
        yield process, tell
    finally:
        process.kill()
        process.communicate()


def is_one_of(two, folder):
    """Load a folder; it must be one of the two, whole."""
    answer = askwise.load(folder).predict_proba(cases.make_rows(8, 3)[0])
    return any(np.array_equal(answer, known) for known in two[2])


def only_one_version(folder):
    """Nothing is in the folder but the current version."""
    beside, versions = ({path.name for path in place.iterdir()} for place in (folder, folder / "versions"))
    return beside == {"manifest.json", "versions"} and versions == {"lock", version_of(folder).name}


def test_no_load_is_refused_while_another_process_saves(two, tmp_path):
    target = tmp_path / "saved"
    askwise.load(two[0]).save(target)
    with writer(two, target) as (process, tell):
        tell("for ever")
        versions, end = set(), time.monotonic() + 6
        for k in range(10_000):
            if time.monotonic() > end:
                break
            manifest, _ = read_folder(target, None, only=() if k % 2 else None)
            versions.add(manifest["files"]["arrays.safetensors"]["sha256"])
            if k % 50 == 0:
                assert is_one_of(two, target)
        assert k > 50
        assert process.poll() is None
        assert len(versions) == 2  # both were seen


def test_a_killed_save_leaves_a_folder_that_loads(two, tmp_path):
    target, rng = tmp_path / "saved", np.random.default_rng(0)
    selector = askwise.load(two[0])
    selector.save(target)
    left = 0
    with writer(two, target) as (_, tell):
        for _ in range(40):
            assert tell(rng.uniform(0.01, 0.05)) == "killed\n"
            assert is_one_of(two, target)
            left += not only_one_version(target)
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert left  # some were killed at work
    selector.save(target)
    assert only_one_version(target)


def test_a_first_save_that_is_killed_can_be_done_again(two, tmp_path):
    (tmp_path / "saved" / "versions" / f"{'0' * 32}.part").mkdir(parents=True)
    (tmp_path / "saved" / "versions" / f"{'1' * 32}.part").write_text("half a mani")
    (tmp_path / "saved" / "versions" / "lock").touch()
    askwise.load(two[0]).save(tmp_path / "saved")
    assert only_one_version(tmp_path / "saved")
    assert is_one_of(two, tmp_path / "saved")


def test_several_may_save_at_once(tmp_path):
    def save(text: str) -> None:
        for _ in range(15):
            write_folder(tmp_path / "saved", {"text": text}, {"a.bin": text.encode()}, None)
            manifest, files = read_folder(tmp_path / "saved", None)
            same.append(manifest["text"].encode() == files["a.bin"])

    same: list[bool] = []
    threads = [threading.Thread(target=save, args=(text,)) for text in ("first", "second", "third")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(same) == 45
    assert all(same)
    assert only_one_version(tmp_path / "saved")


def test_what_was_saved_before_is_gone(two, tmp_path, capsys):
    selector = askwise.load(two[0])
    selector.save(tmp_path / "saved")
    selector.save(tmp_path / "saved", rows="synthetic")  # the training rows of the version before are not kept
    assert only_one_version(tmp_path / "saved")


def test_the_lock_of_a_file_ends_with_its_holder(tmp_path):
    path = tmp_path / "parts" / "lock"
    with file_lock(path):
        with pytest.raises(LockHeldError), file_lock(path, wait=False):
            pass
        path.unlink()  # a holder may remove it with its folder
        path.parent.rmdir()
    with file_lock(path, wait=False):
        pass
    holder = "from pathlib import Path; import sys, time; from askwise.locking import file_lock\n"
    holder += "with file_lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", holder, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(LockHeldError), file_lock(path, wait=False):
        pass
    process.kill()
    process.communicate()
    with file_lock(Path(path), wait=False):
        pass
