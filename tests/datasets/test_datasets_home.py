"""The data home: found, filled by verified downloads, never half-written."""

from __future__ import annotations

import dataclasses
import gzip
import http.server
import io
import os
import re
import shutil
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from askwise.datasets import home, load, sources
from askwise.datasets.home import DataFile, data_home, fetch
from askwise.datasets.tables import read_table, table_digest
from askwise.errors import AskwiseError

CONTENT = b"1,2.5,a\n3,?,b\n"
READ = partial(read_table, columns=["x", "y", "label"], text=["label"])
FILE = DataFile("tabular/tiny/tiny.data", ("tiny/tiny.data",), READ, table_digest(READ(CONTENT)))


class Site:
    """A web site of a few files on this machine."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.promise_more = 0


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    pages = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append(self.path)
            content = pages.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content) + pages.promise_more))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setattr(home, "UCI", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield pages
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("ASKWISE_DATA", str(folder))
    return folder


@pytest.fixture
def real_home() -> Path:
    """The data home with the real files; to be asked for before `empty_home`, which names another one."""
    folder = data_home()
    needed = (sources.HEART, *sources.HEART_PRICES)
    if not all((folder / file.path).exists() for file in needed):
        pytest.skip(f"the real files are not in {folder}")
    return folder


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_download_is_kept_and_not_repeated(site, empty_home):
    site.files["/tiny/tiny.data"] = CONTENT
    first, second = fetch(FILE), fetch(FILE)
    assert first.equals(second)
    assert site.asked == ["/tiny/tiny.data"]
    assert files_below(empty_home) == [os.path.join("tabular", "tiny", "tiny.data")]
    assert (empty_home / FILE.path).read_bytes() == CONTENT


def test_next_source_is_tried(site, empty_home):
    site.files["/second"] = CONTENT
    fetch(DataFile(FILE.path, ("first", "second"), READ, FILE.digest))
    assert site.asked == ["/first", "/second"]


@pytest.mark.parametrize("sent", [b"<html>sorry</html>", b"", CONTENT.replace(b"3", b"4"), b"\xff\xfe\x00"])
def test_wrong_download_is_refused_and_leaves_nothing(site, empty_home, sent):
    site.files["/tiny/tiny.data"] = sent
    with pytest.raises(AskwiseError, match=r"did not send the expected tiny\.data"):
        fetch(FILE)
    assert not empty_home.exists()


def test_broken_connection_leaves_nothing(site, empty_home):
    site.files["/tiny/tiny.data"] = CONTENT
    site.promise_more = 10
    with pytest.raises(AskwiseError, match=r"tiny\.data .* could not be downloaded"):
        fetch(FILE)
    assert not empty_home.exists()


@pytest.mark.parametrize("moment", ["write", "replace"])
def test_interruption_leaves_no_half_file(site, empty_home, monkeypatch, moment):
    def half_write(path: Path, content: bytes) -> None:
        with path.open("wb") as file:
            file.write(content[:3])
        raise KeyboardInterrupt

    def no_replace(*_: object) -> None:
        raise KeyboardInterrupt

    site.files["/tiny/tiny.data"] = CONTENT
    with monkeypatch.context() as patch:
        if moment == "write":
            patch.setattr(Path, "write_bytes", half_write)
        else:
            patch.setattr(os, "replace", no_replace)
        with pytest.raises(KeyboardInterrupt):
            fetch(FILE)
    assert files_below(empty_home) == []
    assert len(fetch(FILE)) == 2


def test_offline_says_which_file_from_where_to_where(empty_home, monkeypatch):
    monkeypatch.setattr(home, "UCI", "http://127.0.0.1:9/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(AskwiseError) as caught:
        load("bupa")
    message = str(caught.value)
    folder = str(empty_home / "tabular" / "bupa")
    url = "http://127.0.0.1:9/ml/machine-learning-databases/liver-disorders/bupa.data"
    for part in ("bupa.data", url, folder, "ASKWISE_DATA"):
        assert part in message
    assert not empty_home.exists()


def test_heart_comes_with_the_package(empty_home, monkeypatch):
    monkeypatch.setattr(home, "UCI", "http://127.0.0.1:9/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert load("heart").X.shape == (303, 13)
    assert not empty_home.exists()
    listed = re.findall(r"`(tabular/\S+)` \| `(\w{64})`", (home.SHIPPED / "README.md").read_text(encoding="utf-8"))
    assert len(listed) == 4
    for path, digest in listed:
        assert home.checksum((home.SHIPPED / path).read_bytes()) == digest


def test_damaged_file_in_the_home_is_refused(empty_home):
    target = empty_home / FILE.path
    target.parent.mkdir(parents=True)
    target.write_bytes(CONTENT.replace(b"2.5", b"2.6"))
    with pytest.raises(AskwiseError) as caught:
        fetch(FILE)
    assert str(target) in str(caught.value)
    assert "Delete it" in str(caught.value)


def test_damaged_copy_of_a_real_file_is_refused(real_home, empty_home):
    for file in (sources.HEART, *sources.HEART_PRICES):
        (empty_home / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(real_home / file.path, empty_home / file.path)
    assert load("heart").X.shape == (303, 13)
    damaged = empty_home / sources.HEART.path
    damaged.write_bytes(damaged.read_bytes().replace(b"233.0", b"234.0", 1))
    with pytest.raises(AskwiseError, match=r"processed\.cleveland\.data is not the expected one: its checksum must be"):
        load("heart")


def test_unwritable_home_is_said(site, tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    monkeypatch.setenv("ASKWISE_DATA", str(in_the_way))
    site.files["/tiny/tiny.data"] = CONTENT
    with pytest.raises(AskwiseError, match=r"cannot write tiny\.data .*ASKWISE_DATA"):
        fetch(FILE)


def test_zip_of_the_source_is_kept_as_gzip(empty_home, site):
    columns, numbers = sources.DIABETES_COLUMNS.split(), sources.DIABETES_NUMBERS.split()
    cells = ["1" if name in numbers else "No" for name in columns]
    csv = "\n".join([",".join(columns), ",".join(cells), ",".join(cells)]).encode()
    tiny = dataclasses.replace(sources.DIABETES, digest=table_digest(sources.DIABETES.read(csv)))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("dataset_diabetes/IDs_mapping.csv", b"id,description\n")
        file.writestr("dataset_diabetes/diabetic_data.csv", csv)
    site.files["/" + sources.DIABETES.sources[0]] = archive.getvalue()
    assert fetch(tiny).shape == (2, 50)
    assert gzip.decompress((empty_home / sources.DIABETES.path).read_bytes()) == csv


def test_home_is_named_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    assert data_home() == tmp_path


@pytest.mark.skipif(os.name == "nt", reason="the cache folder of Unix")
def test_home_is_in_the_cache_folder_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("ASKWISE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_home() == tmp_path / "askwise"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_home() == tmp_path / ".cache" / "askwise"
