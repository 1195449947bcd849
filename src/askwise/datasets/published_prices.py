"""Prices of medical tests as P. D. Turney published them, with the discounts of tests that share a set-up cost.

For each table there is an `.expense` file with lines ``test: full price, discounted price`` and a `.group`
file with lines ``test: group``. The discounted price holds once another test of the same group has been
ordered.

Turney (1995), Cost-sensitive classification, Journal of Artificial Intelligence Research 2:369-409.
"""

from __future__ import annotations

import pandas as pd

from askwise.errors import AskwiseError
from askwise.table.prices import Prices

CENTS = 2
"""Prices are in dollars and cents, so a difference of two prices is rounded to as many decimals."""

_REPLACE = "Replace the .expense and .group files by those of the original distribution."


def read_expenses(content: bytes) -> pd.DataFrame:
    """An `.expense` file as a table: test, full, discounted."""
    rows = [(test, *map(float, prices.split(","))) for test, prices in _entries(content)]
    return pd.DataFrame(rows, columns=["test", "full", "discounted"])


def read_groups(content: bytes) -> pd.DataFrame:
    """A `.group` file as a table: test, group."""
    return pd.DataFrame(_entries(content), columns=["test", "group"])


def read_delays(content: bytes) -> pd.DataFrame:
    """A `.delay` file as a table: test, and whether its result is immediate or delayed."""
    return pd.DataFrame(_entries(content), columns=["test", "delay"])


def published_times(delays: pd.DataFrame) -> dict[str, float]:
    """How long each result takes, in delays: 0 where it is immediate, 1 where it is not, as published.

    Examples
    --------
    >>> published_times(read_delays(b"age: immediate.\\nchol: delayed."))
    {'age': 0.0, 'chol': 1.0}
    """
    return {test: float(delay != "immediate") for test, delay in delays.itertuples(index=False)}


def published_prices(expenses: pd.DataFrame, groups: pd.DataFrame) -> Prices:
    """Both files as `Prices`: the full prices, and for each group what its second and later tests save.

    Examples
    --------
    >>> expenses = read_expenses(b"chol: 7.27, 5.17\\nfbs: 5.20, 3.10\\nage: 1.00, 1.00")
    >>> published_prices(expenses, read_groups(b"A.\\n\\nchol: A.\\nfbs: A."))
    Prices({'chol': 7.27, 'fbs': 5.2, 'age': 1.0}, shared=[(['chol', 'fbs'], 2.1)])
    """
    tests = expenses["test"].tolist()
    full: list[float] = expenses["full"].tolist()
    savings = (expenses["full"] - expenses["discounted"]).round(CENTS).tolist()
    saving_of = dict(zip(tests, savings, strict=True))
    members_of: dict[str, list[str]] = {}
    for test, group in zip(groups["test"].tolist(), groups["group"].tolist(), strict=True):
        members_of.setdefault(group, []).append(test)
    _check_every_discount_has_a_group(saving_of, groups["test"].tolist())
    shared = [(members, _common_saving(group, members, saving_of)) for group, members in members_of.items()]
    return Prices(dict(zip(tests, full, strict=True)), shared=shared)


def _entries(content: bytes) -> list[tuple[str, str]]:
    """Lines ``test: something``, without the full stop that ends some of them; other lines are headings."""
    lines = [line.partition(":") for line in content.decode("utf-8-sig").splitlines()]
    return [(test.strip(), value.strip().removesuffix(".").strip()) for test, colon, value in lines if colon]


def _common_saving(group: str, members: list[str], saving_of: dict[str, float]) -> float:
    savings = {test: saving_of.get(test) for test in members}
    distinct = set(savings.values())
    saving = next(iter(distinct))
    if len(distinct) > 1 or saving is None:
        raise AskwiseError(
            f"datasets: the tests of price group {group!r} must all save the same when another one has been "
            f"ordered; got {savings}. {_REPLACE}"
        )
    return saving


def _check_every_discount_has_a_group(saving_of: dict[str, float], grouped: list[str]) -> None:
    loose = {test: saving for test, saving in saving_of.items() if saving and test not in grouped}
    if loose:
        raise AskwiseError(
            f"datasets: a test with a discount must be in a price group; these are not: {loose}. {_REPLACE}"
        )
