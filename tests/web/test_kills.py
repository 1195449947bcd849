"""kill -9 while answers are written: nothing that was acknowledged is lost, and nothing is written twice."""

import pytest

pytest.importorskip("fastapi")

from tests.web.killing import free_port, kill_while_writing

from askwise.web.database import migrate
from askwise.web.settings import Settings

N_KILLS = 20


def test_sqlite_loses_nothing(folder, tmp_path):
    settings = Settings(str(folder), f"sqlite:///{tmp_path}/cases.sqlite3", port=free_port(), rate=0)
    migrate(settings.url)
    found = kill_while_writing(settings, N_KILLS)
    assert found["acknowledged"] > N_KILLS


def test_postgresql_loses_nothing_even_if_it_crashes_itself(folder, postgres):
    settings = Settings(str(folder), postgres.another_database("kills"), port=free_port(), rate=0)
    migrate(settings.url)

    def crash(number):
        if number % 10 == 9:
            postgres.crash()
            postgres.start()

    found = kill_while_writing(settings, N_KILLS, on_kill=crash)
    assert found["acknowledged"] > N_KILLS
