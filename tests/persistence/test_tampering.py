"""A folder that is not exactly what was saved is refused with the reason, and nothing of it is run."""

import hashlib
import hmac
import io
import json
import os
import pickle
import shutil
import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from tests.persistence import cases
from tests.persistence.layout import change_manifest, make_flat, rewrite, version_of

import askwise
from askwise.errors import InvalidInput
from askwise.persistence import folder as folder_module
from askwise.persistence.folder import FLAT_FORMAT, FORMAT, read_folder

safetensors = pytest.importorskip("safetensors.numpy")
pytest.importorskip("skops")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    X, y = cases.make_rows()
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    folder = tmp_path_factory.mktemp("original") / "saved"
    cases.selector(model, policy="static").fit(X, y).save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of a saved folder to tamper with."""
    return Path(shutil.copytree(saved, tmp_path / "saved"))


def refused(folder, message, **options):
    with pytest.raises(InvalidInput, match=message):
        askwise.load(folder, **options)


def change_state(folder, change):
    state = json.loads((version_of(folder) / "state.json").read_text())
    change(state)
    rewrite(folder, "state.json", json.dumps(state).encode())


def test_every_file_truncated_missing_or_swapped(saved, tmp_path):
    inside = version_of(saved).relative_to(saved)
    names = [Path("manifest.json"), *sorted(inside / path.name for path in version_of(saved).iterdir())]
    assert [path.name for path in names] == ["manifest.json", "arrays.safetensors", "models.skops", "state.json"]
    for k, name in enumerate(names):
        content = (saved / name).read_bytes()
        other = (saved / names[k - 1]).read_bytes()
        for n, wrong in enumerate((content[: len(content) // 2], b"", other, content + b" ", content + b"\n", None)):
            copy = Path(shutil.copytree(saved, tmp_path / f"{k}{n}"))
            if wrong is None:
                (copy / name).unlink()
            else:
                (copy / name).write_bytes(wrong)
            with pytest.raises(InvalidInput):
                askwise.load(copy)


def test_every_flipped_bit_is_found(saved, tmp_path):
    rng = np.random.default_rng(0)
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    signed = tmp_path / "signed"
    askwise.load(saved).save(signed, key_file=key)
    for folder, options in ((saved, {}), (signed, {"key_file": key})):
        copy = Path(shutil.copytree(folder, tmp_path / f"copy of {folder.name}"))
        for path in (copy / "manifest.json", *version_of(copy).iterdir()):
            content = path.read_bytes()
            # All bits of short files, and of the parts of long ones that say most: the beginning and the end.
            places = [*range(min(40, len(content))), *range(max(0, len(content) - 40), len(content))]
            places += rng.integers(len(content), size=150).tolist()
            for place in places:
                changed = bytearray(content)
                changed[place] ^= 1 << int(rng.integers(8))
                path.write_bytes(changed)
                with pytest.raises(InvalidInput):
                    read_folder(copy, **{"key_file": None, **options})
            with pytest.raises(InvalidInput):
                askwise.load(copy, **options)
            path.write_bytes(content)
        assert askwise.load(copy, **options).features_


def test_extra_files_links_and_paths_are_refused(folder, saved, tmp_path):
    for place, said in ((folder, ""), (version_of(folder), ""), (folder / "versions", "versions/")):
        (place / "model.pkl").write_bytes(pickle.dumps({"a": 1}))
        refused(folder, rf"holds '{said}model\.pkl', which its manifest does not list")
        (place / "model.pkl").unlink()
        (place / "inner").mkdir()
        refused(folder, f"'{said}inner'")
        (place / "inner").rmdir()
    (version_of(folder) / "state.json").unlink()
    (version_of(folder) / "state.json").symlink_to(version_of(saved) / "state.json")
    refused(folder, r"state\.json cannot be read")
    link = tmp_path / "link"
    link.symlink_to(saved)
    refused(link, "is not a folder")
    refused(tmp_path / "nothing", "is not a folder")
    refused(tmp_path, r"holds no manifest\.json")
    files = json.loads((saved / "manifest.json").read_text())["files"]
    for name in ("../secret", "/etc/passwd", "a/b", "..", "manifest.json", "versions", ""):
        change_manifest(folder, files={**files, name: {"size": 1, "sha256": ""}})
        refused(folder, "must list files of its own folder")
    huge = {**files["models.skops"], "size": 10**18}
    change_manifest(folder, files={**files, "models.skops": huge})
    refused(folder, "state|truncated")
    change_manifest(folder, files={**files, "extra.pkl": {"size": 1, "sha256": ""}})
    refused(folder, "cannot be read")
    os.mkfifo(version_of(folder) / "extra.pkl")
    refused(folder, r"state\.json|not a regular file")


def test_links_in_place_of_versions_are_refused(saved, tmp_path):
    for name in ("versions", f"versions/{version_of(saved).name}"):
        folder = Path(shutil.copytree(saved, tmp_path / f"copy {len(name)}"))
        shutil.rmtree(folder / name)
        (folder / name).symlink_to(saved / name)
        refused(folder, "is a link|damaged or altered")
    with pytest.raises(InvalidInput, match="not a selector saved by askwise"):
        askwise.load(saved).save(tmp_path / "copy 8")
    assert askwise.load(saved).features_


def test_format_versions(folder):
    for version, message in (
        (FORMAT + 1, "Update askwise"),
        (FLAT_FORMAT - 1, f"saved in format {FLAT_FORMAT - 1}, and this askwise reads .* Fit and save the selector"),
        (0, "does not exist"),
        ("1", "does not exist"),
        (None, "not exist"),
    ):
        change_manifest(folder, format_version=version)
        refused(folder, message)
    change_manifest(folder, format="other")
    refused(folder, "not a manifest of askwise")


def test_a_folder_of_the_flat_format_is_read_and_replaced(folder, saved, tmp_path, monkeypatch):
    selector, key = askwise.load(saved), tmp_path / "key"
    make_flat(folder)
    rows = cases.make_rows()[0]
    before = selector.predict_proba(rows)
    np.testing.assert_array_equal(askwise.load(folder).predict_proba(rows), before)
    (folder / "thesis.txt").write_text("mine")
    refused(folder, r"'thesis\.txt'")
    with pytest.raises(InvalidInput, match="not a selector saved by askwise"):
        selector.save(folder)
    (folder / "thesis.txt").unlink()
    steps = {name: getattr(os, name) for name in ("fsync", "replace", "unlink")}
    for fails_at in range(12):  # it is killed after so many steps; its folder can be read each time
        left = iter(range(fails_at))

        def dying(*args, name, left=left, **options):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return steps[name](*args, **options)

        copy = Path(shutil.copytree(folder, tmp_path / f"copy {fails_at}"))
        with monkeypatch.context() as patched:
            patched.setattr("askwise.persistence.folder._prune", lambda target: None)
            for name in steps:
                patched.setattr(os, name, partial(dying, name=name))
            with suppress(KeyboardInterrupt):
                selector.save(copy)
        np.testing.assert_array_equal(askwise.load(copy).predict_proba(rows), before)
        selector.save(copy)
        assert sorted(path.name for path in copy.iterdir()) == ["manifest.json", "versions"]
        assert {path.name for path in (copy / "versions").iterdir()} == {"lock", version_of(copy).name}
    key.write_bytes(b"0123456789abcdef")
    selector.save(folder, key_file=key)
    assert askwise.load(folder, key_file=key).features_ == selector.features_
    make_flat(folder)
    refused(folder, "does not match key_file", key_file=key)  # make_flat has changed the manifest


def test_another_version_of_scikit_learn_is_mentioned(folder):
    change_manifest(folder, libraries={"scikit-learn": "0.24.2"})
    with pytest.warns(UserWarning, match=r"saved with scikit-learn 0\.24\.2"):
        askwise.load(folder)


def test_json_must_be_plain(folder):
    original = (version_of(folder) / "state.json").read_bytes()
    for content, message in (
        (b"[" * 100_000, "nested more than"),
        (original.replace(b"null", b"NaN", 1), "not valid JSON"),
        (b'{"root": 1, "root": 2}', "repeated"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[]", "damaged"),
        (b'{"root": {"ref": 10000000}, "nodes": []}', "refers to nothing"),
        (b'{"root": {"ref": 0}, "nodes": [{"kind": "tuple", "items": [{"ref": 0}]}]}', "holds itself"),
        (b'{"root": {"ref": 0}, "nodes": [{"kind": "list", "items": [{"ref": 0}]}]}', "holds a list, not a selector"),
        (b'{"root": {"ref": 0}, "nodes": [{"kind": "surprise"}]}', "damaged"),
        (b'{"root": {"ref": 0}, "nodes": [{"kind": "range", "items": [0, 1000000000000, 1]}]}', "too long"),
        (b'{"root": {"ref": 0}, "nodes": [{"kind": "objects", "shape": [1000000000], "items": []}]}', "has 0 items"),
    ):
        rewrite(folder, "state.json", content)
        refused(folder, message)
    chain = [{"kind": "tuple", "items": [{"ref": i + 1}]} for i in range(100_000)]
    rewrite(folder, "state.json", json.dumps({"root": {"ref": 0}, "nodes": [*chain, {"kind": "lock"}]}).encode())
    refused(folder, "damaged")


def test_only_known_classes_are_made(folder):
    original = (version_of(folder) / "state.json").read_bytes()
    for name in (
        "subprocess.Popen",
        "os.system",
        "builtins.eval",
        "askwise.cli.console.Console",
        "askwise.table.reading.pd",
        "askwise.table.schema.np",
        "sklearn.utils.Bunch",
        "torch.nn.modules.module.Module.__init__",
        "tests.persistence.cases.selector",
    ):
        rewrite(folder, "state.json", original)

        def change(state, name=name):
            next(node for node in state["nodes"] if node["kind"] == "object")["class"] = name

        change_state(folder, change)
        refused(folder, "not one of askwise's own classes|not a class|another name")

    def with_a_method(state):
        state["nodes"].append({"kind": "method", "name": "save", "of": {"ref": 0}})
        state["nodes"][0]["state"].append(["predict", {"ref": len(state["nodes"]) - 1}])

    rewrite(folder, "state.json", original)
    change_state(folder, with_a_method)
    refused(folder, "not a method that askwise saves")
    for attribute in ("__class__", "__dict__", "a b", 3):
        rewrite(folder, "state.json", original)
        change_state(folder, lambda state, name=attribute: state["nodes"][0]["state"].append([name, 1]))
        refused(folder, "not the name of an attribute")


def test_arrays_must_be_within_their_file(folder):
    arrays = safetensors.load((version_of(folder) / "arrays.safetensors").read_bytes())
    size = len(safetensors.save(arrays))
    header = json.dumps({"0": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}}).encode()
    for content in (
        len(header).to_bytes(8, "little") + header + b"\0" * 64,
        (2**62).to_bytes(8, "little") + b"\0" * size,
        b"",
        pickle.dumps(arrays),
    ):
        rewrite(folder, "arrays.safetensors", content)
        refused(folder, "damaged")
    arrays.pop("0")
    rewrite(folder, "arrays.safetensors", safetensors.save(arrays))
    refused(folder, "is missing")


def repacked(content, change=None, entries=(), compression=zipfile.ZIP_STORED):
    """A skops file with another schema or further entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(out, "w", compression) as after:
        for name in before.namelist():
            part = before.read(name)
            if name == "schema.json" and change is not None:
                schema = json.loads(part)
                change(schema)
                part = json.dumps(schema).encode()
            after.writestr(name, part)
        for name, part in entries:
            after.writestr(name, part)
    return out.getvalue()


def test_the_skops_file_is_checked_before_it_is_read(folder, monkeypatch):
    import skops.io

    original = (version_of(folder) / "models.skops").read_bytes()
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    large = array.getvalue().replace(b"(3,)", b"(9999999999,)").replace(b" " * 9 + b"\n", b"\n")
    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object))

    def node(**entries):
        return lambda schema: schema["content"].append({"__class__": "x", "__module__": "y", **entries})

    monkeypatch.setattr(skops.io, "loads", lambda *args, **options: pytest.fail("it was loaded"))
    for content, message in (
        (repacked(original, compression=zipfile.ZIP_DEFLATED), "compressed"),
        (repacked(original, entries=[("1.bin", b"\0" * 10**7)], compression=zipfile.ZIP_DEFLATED), "compressed"),
        (repacked(original, entries=[("../../evil.npy", b"")]), "does not write"),
        (repacked(original, entries=[("model.pkl", pickle.dumps(1))]), "does not write"),
        (repacked(original, entries=[("100000.npy", large)]), "declares"),
        (repacked(original, entries=[("100000.npy", objects.getvalue())]), "declares"),
        (repacked(original, entries=[("100000.npy", b"x")]), "not an array"),
        (repacked(original, lambda schema: schema.update(protocol=0)), "protocol"),
        (repacked(original, node(__loader__="MethodNode")), "MethodNode"),
        (repacked(original, node(__loader__="OperatorFuncNode")), "OperatorFuncNode"),
        (repacked(original, node(__loader__="NdArrayNode", file="700000.npy")), "does not hold"),
        (original[:-30], "not a skops file"),
        (b"nothing", "not a skops file"),
    ):
        rewrite(folder, "models.skops", content)
        refused(folder, message)
    untrusted = {"__loader__": "TypeNode", "__class__": "Popen", "__module__": "subprocess"}
    rewrite(folder, "models.skops", repacked(original, lambda schema: schema["content"].append(untrusted)))
    refused(folder, r"subprocess\.Popen.*If you trust them")


def test_trees_that_point_outside_are_refused(folder):
    original = (version_of(folder) / "models.skops").read_bytes()

    def with_other_nodes(column, value):
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(original)) as before, zipfile.ZipFile(out, "w") as after:
            for name in before.namelist():
                part = before.read(name)
                array: Any = np.load(io.BytesIO(part)) if name.endswith(".npy") else np.zeros(0)
                if array.dtype.names is not None and column in array.dtype.names and array["left_child"][0] > 0:
                    array[column][0] = value
                    stream = io.BytesIO()
                    np.save(stream, array)
                    part = stream.getvalue()
                after.writestr(name, part)
        return out.getvalue()

    for column, value, message in (
        ("left_child", 10**6, "whose child is not below it"),
        ("right_child", 0, "whose child is not below it"),
        ("feature", 10**6, "a column that does not exist"),
    ):
        rewrite(folder, "models.skops", with_other_nodes(column, value))
        refused(folder, message)


def test_signatures(folder, saved, tmp_path):
    key, other, short = (tmp_path / name for name in ("key", "other", "short"))
    key.write_bytes(os.urandom(32).hex().encode())
    other.write_bytes(os.urandom(32).hex().encode())
    short.write_bytes(b"secret")
    refused(folder, "is not signed", key_file=key)
    signed = tmp_path / "signed"
    selector = askwise.load(saved)
    selector.save(signed, key_file=key)
    assert askwise.load(signed, key_file=key).features_ == selector.features_
    refused(signed, "is signed: give the key")
    refused(signed, "does not match key_file", key_file=other)
    refused(signed, "at least 16 bytes", key_file=short)
    refused(signed, "cannot be read", key_file=tmp_path / "none")
    with pytest.raises(InvalidInput, match="at least 16 bytes"):
        selector.save(tmp_path / "again", key_file=short)
    made = hmac.new(key.read_bytes(), (signed / "manifest.json").read_bytes(), hashlib.sha256).hexdigest()
    assert (version_of(signed) / "manifest.sig").read_text() == made
    rewrite(signed, "state.json", (version_of(signed) / "state.json").read_bytes() + b" ")
    refused(signed, "does not match key_file", key_file=key)


def test_a_folder_appears_complete_or_not_at_all(folder, tmp_path, monkeypatch):
    selector = askwise.load(folder)
    before = (folder / "manifest.json").read_bytes()
    for name, message in (("file", "is not a folder"), ("full", "not a selector saved by askwise")):
        target = tmp_path / name
        if name == "full":
            target.mkdir()
            (target / "thesis.txt").write_text("mine")
        else:
            target.write_text("mine")
        with pytest.raises(InvalidInput, match=message):
            selector.save(target)
    for place in (folder, version_of(folder), folder / "versions"):
        (place / "thesis.txt").write_text("mine")
        with pytest.raises(InvalidInput, match="not a selector saved by askwise"):
            selector.save(folder)
        (place / "thesis.txt").unlink()

    def failing(*args):
        raise OSError("no space left")

    for place in (folder, tmp_path / "new"):
        for owner, name in ((os, "fsync"), (os, "replace"), (Path, "rename")):
            with monkeypatch.context() as patched:
                patched.setattr(owner, name, failing)
                with pytest.raises(OSError, match="no space"):
                    selector.save(place)
    assert (folder / "manifest.json").read_bytes() == before
    assert {path.name for path in (folder / "versions").iterdir()} == {"lock", version_of(folder).name}
    selector.save(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "saved"]
    assert askwise.load(folder).features_ == selector.features_


def test_what_was_damaged_is_put_right_by_saving_again(folder):
    selector = askwise.load(folder)
    (version_of(folder) / "state.json").write_bytes(b"")
    with pytest.raises(InvalidInput):
        askwise.load(folder)
    selector.save(folder)
    assert askwise.load(folder).features_ == selector.features_


def test_a_file_is_never_moved_aside_for_a_folder(folder, tmp_path, monkeypatch):
    selector = askwise.load(folder)
    table = tmp_path / "table.csv"
    table.write_text("a,b")
    with pytest.raises(InvalidInput, match="not a folder"):
        selector.save(tmp_path / "new" / ".." / "table.csv")
    late = tmp_path / "late.csv"
    check = folder_module.check_target

    def meanwhile(target):
        check(target)
        late.write_text("a,b")

    monkeypatch.setattr(folder_module, "check_target", meanwhile)
    with pytest.raises(InvalidInput, match="not a folder"):
        selector.save(late)
    assert table.read_text() == late.read_text() == "a,b"


def test_a_folder_in_place_of_a_file_and_things_that_are_no_class_are_refused(folder):
    for trusted in (None, [5], "os.system"):
        refused(folder, "trusted must be a list", trusted=trusted)
    (version_of(folder) / "state.json").unlink()
    (version_of(folder) / "state.json").mkdir()
    refused(folder, "not a regular file")
