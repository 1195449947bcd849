"""INVASE: the selector finds what matters in each row, and the predictor answers on every subset."""

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from askwise.errors import InvalidInput
from askwise.networks import CellCoder
from askwise.table.rows import EncodedRows
from askwise.table.schema import read_table
from askwise_bench.baselines.invase import INVASE, _Game

QUICK: dict[str, Any] = {
    "selector": (40,),
    "predictor": (40,),
    "steps": 500,
    "learning_rate": 5e-3,
    "weight_decay": 1e-4,
}


def switching(n=500, seed=0):
    """The sign of `switch` says whether `left` or `right` holds the label; `noise` tells nothing."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["switch", "left", "right", "noise"])
    return X, (np.where(X["switch"] > 0, X["left"], X["right"]) > 0).astype(int)


@functools.cache
def fitted(**options):
    return INVASE(**{**QUICK, "random_state": 0, **options}).fit(*switching())


def test_the_selector_reads_the_row_it_selects_for():
    baseline, (X, _) = fitted(sparsity=0.3), switching(300, seed=1)
    probability = baseline.selection_probability(EncodedRows(X.to_numpy()))
    to_the_left = (X["switch"] > 0).to_numpy()
    prefers_left = probability[:, 1] > probability[:, 2]
    assert (prefers_left == to_the_left).mean() > 0.8
    assert probability[:, 3].mean() < probability[:, :3].mean() - 0.1


def test_features_are_bought_in_the_order_of_their_probability():
    baseline, (X, _) = fitted(sparsity=0.3), switching(50, seed=2)
    assert baseline.sees_everything
    expected = np.argsort(-baseline.selection_probability(EncodedRows(X.to_numpy())), axis=1, kind="stable")
    assert_array_equal(baseline.acquire(X).order, expected)


def test_a_higher_price_of_selection_selects_less():
    rows = EncodedRows(switching(200, seed=3)[0].to_numpy())
    shares = [fitted(sparsity=sparsity).selection_probability(rows).mean() for sparsity in (0.3, 30.0)]
    assert shares[1] < min(0.1, shares[0])


def test_the_predictor_answers_on_every_subset():
    baseline, (X, y) = fitted(sparsity=0.3), switching(400, seed=4)
    assert (baseline.predict(X) == y).mean() > 0.85
    alone = (baseline.predict(X.assign(switch=np.nan, right=np.nan, noise=np.nan)) == y).mean()
    assert 0.6 < alone < 0.85  # `left` alone is right on three quarters of the rows
    nothing = baseline.predict_proba(X.iloc[:1] * np.nan)[0]
    assert_allclose(nothing, 0.5, atol=0.15)


def test_random_subsets_help_where_the_selector_never_goes():
    X, y = switching(400, seed=5)
    part = X.assign(switch=np.nan, right=np.nan, noise=np.nan)
    losses = [
        -np.log(fitted(sparsity=0.3, random_masks=masks).predict_proba(part)[np.arange(len(y)), y]).mean()
        for masks in (True, False)
    ]
    assert losses[0] < losses[1]


def test_the_gradient_of_the_selector_is_that_of_the_policy():
    """Against the sum over all selections of a small row, weighted by their probabilities."""
    torch.manual_seed(0)
    baseline = INVASE(selector=(3,), predictor=(3,), sparsity=0.7)
    game = _Game(4, 2, 2, np.array([0, 1, 0, 1]), baseline)
    rows, labels = torch.randn(1, 4), torch.tensor([1])
    had = torch.ones(1, 2)
    selections = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    losses = torch.nn.functional.cross_entropy(
        game._predict(rows.repeat(4, 1), selections), labels.repeat(4), reduction="none"
    )
    losses = losses.detach()

    def weights(logits):
        return torch.where(selections == 1, torch.sigmoid(logits), torch.sigmoid(-logits)).prod(dim=1)

    logits = game.selector(rows).detach().requires_grad_()
    mean_loss = (weights(logits) * losses).sum() + 0.7 * torch.sigmoid(logits).mean()
    (expected,) = torch.autograd.grad(mean_loss, logits)
    each = game._selector_loss(logits.expand(4, 2), selections, had.expand(4, 2), losses)
    (got,) = torch.autograd.grad((weights(logits).detach() * each).sum(), logits)
    assert_allclose(got.numpy(), expected.numpy(), atol=1e-6)


def test_a_category_and_its_mask_belong_to_their_feature():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"], "c": [0.0, 1.0, 0.0]})
    schema, rows = read_table(X, {"pair": ["a", "c"]})
    coder = CellCoder(rows, schema)
    assert_array_equal(schema.owner[coder.column], [0, 1, 1, 1, 0, 0, 1, 0])


def test_missing_cells_are_neither_needed_nor_bought():
    X, y = switching(200)
    X.loc[::3, "left"] = np.nan
    baseline = INVASE(**{**QUICK, "steps": 50}, random_state=0).fit(X, y)
    bought = baseline.acquire(X).mask_after(4)
    assert_array_equal(bought[:, 1], X["left"].notna())
    assert bought[:, [0, 2, 3]].all()


def test_sparsity_is_checked():
    with pytest.raises(InvalidInput, match="sparsity"):
        INVASE(sparsity=-1.0).fit(*switching(20))
