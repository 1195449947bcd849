"""A PostgreSQL server of its own for a test, run by an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

ADMINISTRATOR = 0


def programs() -> Path | None:
    """The folder of initdb and postgres; None if they are not installed."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    on_path = shutil.which("initdb")
    places += [Path(on_path).resolve().parent] if on_path else []
    return next((place for place in places if (place / "initdb").is_file() and (place / "postgres").is_file()), None)


class Postgres:
    """A server in `folder`, which must be reachable for everybody; it listens on loopback only.

    PostgreSQL refuses to be run by the administrator: then it is run by the user postgres or nobody.
    """

    def __init__(self, folder: Path) -> None:
        found = programs()
        assert found is not None, "install PostgreSQL first"
        self._programs, self._folder = found, folder
        self._user: dict[str, Any] = {}
        if os.geteuid() == ADMINISTRATOR:
            user = _unprivileged()
            self._user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            shutil.chown(folder, user.pw_uid, user.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._data = folder / "data"
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "askwise", "-E", "UTF8", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        return self._url("postgres")

    def another_database(self, name: str) -> str:
        """The URL of an empty database beside the first one."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "askwise", name)
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql://askwise@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, also after a crash, and wait until it answers."""
        options: tuple[Any, ...] = (
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-k",
            self._folder,
            "-c",
            "max_connections=60",
        )
        with (self._folder / "log").open("ab") as log:
            command = [self._programs / "postgres", "-D", self._data, *options]
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, start_new_session=True, **self._user
            )
        ready: list[Any] = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        for _ in range(300):
            if subprocess.run(ready, cwd=self._folder).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError((self._folder / "log").read_text())

    def crash(self) -> None:
        """End the server and its processes without warning, as a power cut would."""
        self._run("pg_ctl", "stop", "-D", self._data, "-m", "immediate")
        self._process.wait(30)

    def stop(self) -> None:
        if self._process.poll() is None:
            self.crash()

    def _run(self, program: str, *options: Any) -> None:
        command = [self._programs / program, *options]
        subprocess.run(command, cwd=self._folder, check=True, capture_output=True, **self._user)


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no user postgres or nobody to run PostgreSQL")
