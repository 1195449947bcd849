"""One way to split rows: by class or by row group, the same for the same seed."""

import numpy as np
import pandas as pd

from askwise.datasets import Dataset, load
from askwise.datasets.dataset import split_rows


def made(y, row_groups=None):
    return Dataset("made", pd.DataFrame({"x": range(len(y))}), np.asarray(y), None, None, "", row_groups)


def test_each_class_gives_its_share_and_a_single_row_is_trained_on():
    data = made(["a"] * 50 + ["b"] * 20 + ["c"])
    train, test = split_rows(data, 3)
    assert sorted([*train, *test]) == list(range(71))
    assert pd.Series(data.y[test]).value_counts().to_dict() == {"a": 10, "b": 4}
    assert pd.Series(data.y[split_rows(data, 3, test_share=0.5)[1]]).value_counts().to_dict() == {"a": 25, "b": 10}


def test_a_cut_keeps_every_class_and_the_order():
    data = made(["a"] * 500 + ["b"] * 3)
    train, test = split_rows(data, 0)
    fewer, few = split_rows(data, 0, most_training=10, most_test=7)
    assert set(data.y[fewer]) == {"a", "b"}
    assert (len(fewer), len(few)) == (10, 7)
    np.testing.assert_array_equal(fewer, train[:10])
    np.testing.assert_array_equal(few, test[:7])


def test_rows_that_belong_together_stay_together():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 40, 300)
    data = made(rng.integers(0, 2, 300), groups)
    train, test = split_rows(data, 1)
    assert len(test)
    assert not set(groups[train]) & set(groups[test])
    assert len(set(groups[test])) == 8, "a fifth of 40"


def test_a_class_without_training_rows_is_not_tested_on():
    data = made(["a"] * 20 + ["b"], np.array([*range(20), 20]))
    for seed in range(30):
        train, test = split_rows(data, seed)
        assert set(data.y[test]) <= set(data.y[train])
    assert any(20 not in np.concatenate(split_rows(data, seed)) for seed in range(30)), "it was drawn for the test"


def test_a_seed_means_the_same_split_as_ever():
    train, test = split_rows(load("wine"), 0)
    assert (len(train), len(test)) == (142, 36)
    assert train[:6].tolist() == [44, 129, 161, 72, 80, 90]
    assert test[:6].tolist() == [171, 84, 150, 92, 99, 103]


def test_one_missing_cell_is_one_cell():
    for n_missing, words in ((0, "no missing cells"), (1, "1 missing cell)"), (2, "2 missing cells")):
        X = pd.DataFrame({"x": [np.nan] * n_missing + [1.0] * (4 - n_missing)})
        assert words in repr(Dataset("made", X, np.array([0, 1, 0, 1]), None, None, ""))
