"""Whatever is sent, the server does not fail: a few hundred calls here, 5,000 by benchmarks/fuzz.py."""

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")

from tests.web.fuzzing import Fuzzer

import askwise
from askwise.web.app import create_app
from askwise.web.database import migrate
from askwise.web.settings import Settings


def test_no_call_makes_the_server_fail(folder, tmp_path):
    settings = Settings(str(folder), f"sqlite:///{tmp_path}/cases.sqlite3", rate=0)
    migrate(settings.url)
    selector = askwise.load(folder)
    fuzzer = Fuzzer(create_app(selector, settings), list(selector.features_))
    wanted = {200, 201, 404, 409, 422}
    for n_calls in (300, 600, 1200, 2400):  # the server draws the numbers of cases, so that no two runs are the same
        fuzzer.run(n_calls)
        assert not fuzzer.failures, fuzzer.failures[0]
        if wanted <= set(fuzzer.statuses):
            break
    assert wanted <= set(fuzzer.statuses)
