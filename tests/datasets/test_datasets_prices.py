"""Published prices: the two files, and what must hold between them."""

from __future__ import annotations

import pytest

from askwise.datasets.published_prices import published_prices, read_expenses, read_groups
from askwise.errors import AskwiseError

EXPENSES = b"age:\t\t1.00,\t1.00\r\nchol:\t7.27,\t5.17\r\nfbs:\t5.20,\t3.10\r\n\r\n"
GROUPS = b"A, B.\n\nchol:\tA.\nfbs:\tA.\n"


def test_prices_and_shared_saving():
    prices = published_prices(read_expenses(EXPENSES), read_groups(GROUPS))
    assert prices.costs == {"age": 1.0, "chol": 7.27, "fbs": 5.2}
    assert prices.shared == [(["chol", "fbs"], 2.1)]
    assert prices.resolve(["age", "chol", "fbs"]).total() == pytest.approx(1 + 7.27 + 3.10)


def test_unequal_savings_in_a_group_are_refused():
    with pytest.raises(AskwiseError, match=r"group 'A' must all save the same.*'chol': 2\.1, 'fbs': 2\.2"):
        published_prices(read_expenses(EXPENSES.replace(b"3.10", b"3.00")), read_groups(GROUPS))


def test_group_of_a_test_without_price_is_refused():
    with pytest.raises(AskwiseError, match=r"group 'A' must all save the same.*'thal': None"):
        published_prices(read_expenses(EXPENSES), read_groups(GROUPS + b"thal: A.\n"))


def test_discount_outside_every_group_is_refused():
    with pytest.raises(AskwiseError, match=r"must be in a price group; these are not: \{'fbs': 2\.1\}"):
        published_prices(read_expenses(EXPENSES), read_groups(b"A.\nchol: A.\n"))


def test_unreadable_prices_are_a_value_error():
    with pytest.raises(ValueError, match="could not convert"):
        read_expenses(b"age: free, 1.00")
