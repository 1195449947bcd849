"""A served selector and a real browser for the tests of the page, and the checker of its accessibility."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import askwise
from askwise.web.app import create_app
from askwise.web.database import migrate
from askwise.web.settings import Settings

CHROMIUM = shutil.which("chromium")
AXE = "axe-core@4.14.0"
CACHE = Path.home() / ".cache" / "askwise-tests"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")


@contextmanager
def served(folder: Path, token_file: Path | None = None) -> Iterator[str]:
    """The address of a server in this process."""
    with tempfile.TemporaryDirectory() as place:
        tokens = None if token_file is None else str(token_file)
        settings = Settings(str(folder), f"sqlite:///{place}/cases.sqlite3", token_file=tokens, rate=0)
        migrate(settings.url)
        app = create_app(askwise.load(folder), settings)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server has not started"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
        server.should_exit = True
        thread.join(10)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser of the system, driven by playwright."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


def axe_script() -> str:
    """The source of axe-core, fetched once from the npm registry."""
    script = CACHE / AXE.replace("@", "-") / "axe.min.js"
    if not script.is_file():
        _fetch(script)
    return script.read_text(encoding="utf-8")


def _fetch(script: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm, which fetches axe-core, is not installed")
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([npm, "pack", AXE], cwd=place, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot fetch {AXE}: {done.stderr.strip()[-200:]}")
        with tarfile.open(next(Path(place).glob("*.tgz"))) as packed:
            source = packed.extractfile("package/axe.min.js")
            assert source is not None
            script.parent.mkdir(parents=True, exist_ok=True)
            written = Path(place) / "axe.min.js"
            written.write_bytes(source.read())
        shutil.move(written, script)
