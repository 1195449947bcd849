"""A small saved selector, and databases, for the tests of the server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.web.postgres import Postgres, programs

from askwise import DynamicFeatureSelector
from askwise.table.desk import Desk, Shown


def drawn_rows(seed: int = 0) -> pd.DataFrame:
    """Four numbers, a category and a boolean."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, 100),
            "pulse": rng.normal(70, 8, 100).round(1),
            "city": rng.choice(["Ghent", "Lille", "Namur"], 100),
            "smoker": rng.random(100) < 0.4,
            "iron": rng.normal(size=100).round(2),
            "zinc": rng.normal(size=100).round(2),
        }
    )


def save_selector(folder: Path) -> None:
    """Two numbers, a category, a boolean and a group, with prices; quick to load and to ask."""
    X = drawn_rows()
    y = np.where((X["age"] > 50) ^ X["smoker"], "ill", "well")
    numbers = (OneHotEncoder(handle_unknown="ignore"), ["city"])
    model = make_pipeline(make_column_transformer(numbers, remainder="passthrough"), LogisticRegression(max_iter=1000))
    costs = {"age": 0.0, "pulse": 1.5, "blood": 7.27}
    selector = DynamicFeatureSelector(
        model, costs=costs, groups={"blood": ["iron", "zinc"]}, epistemic=None, calibration=None, random_state=0
    )
    desk = Desk("CAD", {"age": Shown("Age", "years", low=0, high=110), "blood": Shown("Blood test")})
    selector.fit(X, y).save(folder, desk=desk)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved selector."""
    path = tmp_path_factory.mktemp("served") / "selector"
    save_selector(path)
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL server."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="askwise-pg-", ignore_cleanup_errors=True) as place:
        server = Postgres(Path(place))  # not below pytest's folder, which other users cannot enter
        try:
            yield server
        finally:
            server.stop()
