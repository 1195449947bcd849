"""What plans promise, from sets made by hand and from those that are found."""

import numpy as np
from numpy.testing import assert_array_equal

from askwise import Prices
from askwise.predict.similarity import Neighbors
from askwise.table.rows import EncodedRows
from askwise.value.plans import Plans

SETS = np.array([[True, False, False], [True, True, False], [False, False, True]])
GAINS = np.repeat([[0.1], [0.5], [0.3]], 4, axis=1)
"""Every row is told the same by a set, so that what it promises is the same for every case."""


def made():
    rows = EncodedRows(np.arange(12.0).reshape(4, 3))
    return Plans(SETS, GAINS, Neighbors(rows, np.zeros(3, dtype=bool), 2, 0.8))


def test_a_feature_promises_the_best_set_with_it_that_the_money_can_buy():
    mask = np.array([[False, False, False], [False, False, False], [True, False, False], [False, True, False]])
    left, available = np.array([[2.0], [1.0], [1.0], [0.5]]), np.ones((4, 3), dtype=bool)
    prices = Prices([1.0, 1.0, 1.0]).resolve(["a", "b", "c"])
    rows = EncodedRows(np.where(mask, 1.0, np.nan))
    found = made().promise(rows, mask, available, left, prices)
    low = -np.inf
    expected = [[0.5, 0.5, 0.3], [0.1, low, 0.3], [low, 0.5, 0.3], [low, low, low]]
    assert_array_equal(found, expected)


def test_the_best_set_within_a_budget():
    prices = Prices([1.0, 1.0, 1.0]).resolve(["a", "b", "c"])
    assert made().best(prices, 2.0).tolist() == [True, True, False]
    assert made().best(prices, 1.0).tolist() == [False, False, True]
