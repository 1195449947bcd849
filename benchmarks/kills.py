"""Kill the server while clients write, hundreds of times: is any acknowledged answer lost?

python -m benchmarks.kills [--kills 500] [--database sqlite|postgresql]

On PostgreSQL every tenth kill also ends the database without warning. Needs PostgreSQL on this machine (Debian: apt-get
install postgresql), which is started in a temporary folder.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.web.conftest import save_selector
from tests.web.killing import free_port, kill_while_writing
from tests.web.postgres import Postgres

from askwise.web.database import migrate
from askwise.web.settings import Settings


def main() -> None:
    """Print what was found; an error if anything is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, tempfile.TemporaryDirectory() as data:
        folder = Path(place) / "selector"
        save_selector(folder)
        database = Postgres(Path(data)) if options.database == "postgresql" else None
        url = f"sqlite:///{place}/cases.sqlite3" if database is None else database.url
        settings = Settings(str(folder), url, port=free_port(), rate=0)
        migrate(settings.url)
        start = time.perf_counter()

        def crash(number: int) -> None:
            if database is not None and number % 10 == 9:
                database.crash()
                database.start()

        try:
            found = kill_while_writing(settings, options.kills, on_kill=crash)
        finally:
            if database is not None:
                database.stop()
    seconds = time.perf_counter() - start
    print(
        f"{options.database}: {found['kills']} kills in {seconds:.0f} s; {found['acknowledged']} acknowledged events, "
        f"none lost, none twice; {found['repeated']} requests had been carried out without an acknowledgment, and were "
        "recognized by their key when sent again."
    )


if __name__ == "__main__":
    main()
