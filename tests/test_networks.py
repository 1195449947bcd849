"""Small networks: what they see of a row, that numpy serves what torch trained, and that torch is left as it was."""

import itertools
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from askwise.errors import AskwiseError
from askwise.networks import ACTIVATIONS, CLIP, MOST_CATEGORIES, CellCoder, Layers, import_torch, seeded, train
from askwise.table.rows import EncodedRows
from askwise.table.schema import read_table

TABLE = pd.DataFrame(
    {
        "age": [20.0, 40.0, np.nan, 60.0],
        "city": ["Lille", "Ghent", "Namur", None],
        "smoker": [True, False, True, True],
        "same": [3.0, 3.0, 3.0, 3.0],
    }
)


def coder_and_rows(table=TABLE):
    schema, rows = read_table(table)
    return CellCoder(rows, schema), rows, schema


def test_a_row_is_scaled_numbers_one_hot_categories_and_the_mask():
    coder, rows, _ = coder_and_rows()
    far = float(20 / np.std([20.0, 40.0, 60.0]))
    #    age   Ghent Lille Namur  no yes  same   mask
    expected: list[list[float]] = [
        [-far, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1],
        [0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1],
        [far, 0, 0, 0, 0, 1, 0, 1, 0, 1, 1],
    ]
    assert_allclose(coder(rows), expected, rtol=0, atol=1e-12)


def test_hidden_cells_are_invisible():
    coder, rows, _ = coder_and_rows()
    mask = np.array([[True, False, True, False], [False, True, False, True], [False] * 4, [False, False, True, True]])
    expected = coder(rows.masked(mask))
    for filler in (1e6, -3.0, 1.0, np.nan):
        other = EncodedRows(np.where(mask, rows.values, filler))
        assert_array_equal(coder(other.masked(mask)), expected, err_msg=f"filled with {filler}")
    assert_array_equal(expected[2], np.zeros(11))


def test_a_hidden_cell_and_an_average_one_differ_by_the_mask_alone():
    coder, rows, _ = coder_and_rows()
    full = rows.take([1])
    hidden = full.masked([False, True, True, True])
    assert_array_equal(np.flatnonzero(coder(full)[0] != coder(hidden)[0]), [7])


def test_far_cells_are_clipped_and_a_constant_column_is_not_blown_up():
    coder, rows, _ = coder_and_rows()
    row = rows.values[[1]].copy()
    row[0, [0, 3]] = -1e9, 4.0
    seen = coder(EncodedRows(row))[0]
    assert seen[0] == -CLIP
    assert seen[6] == 1.0  # one unit off a column that never varied


def test_categories_beyond_the_most_and_those_never_seen_are_no_category():
    names = [f"c{code:02d}" for code in range(MOST_CATEGORIES + 8)]
    table = pd.DataFrame({"code": names, "number": np.arange(len(names), dtype=float)})
    coder, rows, schema = coder_and_rows(table)
    seen = coder(rows)
    assert seen.shape == (len(names), MOST_CATEGORIES + 1 + 2)
    assert_array_equal(seen[:, :MOST_CATEGORIES].sum(axis=1), [1] * MOST_CATEGORIES + [0] * 8)
    later = schema.encode(pd.DataFrame({"code": ["new"], "number": [0.0]}))
    assert_array_equal(coder(later)[0, :MOST_CATEGORIES], np.zeros(MOST_CATEGORIES))


def test_the_coder_changes_nothing_it_is_given():
    coder, rows, _ = coder_and_rows()
    before = rows.values.copy()
    coder(rows)
    assert_array_equal(rows.values, before)


TORCH_ACTIVATIONS = {"identity": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh, "logistic": nn.Sigmoid, "selu": nn.SELU}


def trained_by_torch(activation, *widths):
    parts: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for ins, outs in itertools.pairwise(widths):
            parts += [nn.Linear(ins, outs), TORCH_ACTIVATIONS[activation]()]
    return nn.Sequential(*parts[:-1]).double()


def test_layers_give_what_torch_gives():
    inputs = 3 * np.random.default_rng(0).normal(size=(20, 3))
    kept = inputs.copy()
    for activation, widths in itertools.product(ACTIVATIONS, [(3, 2), (3, 5, 2), (3, 5, 4, 2)]):
        network = trained_by_torch(activation, *widths)
        layers = Layers.from_torch([part for part in network if isinstance(part, nn.Linear)], activation)
        with torch.no_grad():
            expected = network(torch.as_tensor(inputs)).numpy()
            before_last = network[:-1](torch.as_tensor(inputs)).numpy()
        case = f"{activation} {widths}"
        assert_allclose(layers(inputs), expected, rtol=1e-9, atol=1e-9, err_msg=case)
        assert_allclose(layers.hidden(inputs), before_last, rtol=1e-9, atol=1e-9, err_msg=case)
    assert_array_equal(inputs, kept)


def test_activations_stay_finite_far_out():
    far = np.array([-1e6, -800.0, 0.0, 800.0])
    for name, act in ACTIVATIONS.items():
        with np.errstate(over="raise", invalid="raise"):
            found = act(far.copy())
        expected = TORCH_ACTIVATIONS[name]()(torch.as_tensor(far)).numpy()
        assert_allclose(found, expected, rtol=1e-9)


def test_layers_are_a_copy_of_the_trained_ones():
    linear: Any = nn.Linear(3, 2)
    layers = Layers.from_torch([linear], "identity")
    before = layers(np.ones((1, 3)))
    with torch.no_grad():
        linear.weight += 1.0
        linear.bias += 1.0
    assert_array_equal(layers(np.ones((1, 3))), before)


def test_torch_is_seeded_inside_and_as_it_was_outside():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        before = torch.random.get_rng_state()
        draws = []
        for seed in (3, 3, 4):
            with seeded(seed):
                assert torch.get_num_threads() == 1
                draws.append(torch.rand(5))
        assert torch.equal(torch.random.get_rng_state(), before)
        assert torch.get_num_threads() == 2
        assert torch.equal(draws[0], draws[1])
        assert not torch.equal(draws[0], draws[2])
    finally:
        torch.set_num_threads(threads)


def test_networks_are_single_precision_whatever_the_default():
    """Their inputs are; a program that computes in double precision must not get in the way."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with seeded(0):
            assert nn.Linear(2, 2)(torch.zeros(1, 2, dtype=torch.float32)).dtype == torch.float32
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(before)


def fails_after_drawing(seed):
    with seeded(seed):
        torch.rand(5)
        raise RuntimeError("in the middle")


def test_torch_is_as_it_was_after_a_failure_too():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        before = torch.random.get_rng_state()
        with pytest.raises(RuntimeError, match="in the middle"):
            fails_after_drawing(3)
        assert torch.equal(torch.random.get_rng_state(), before)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def squared_error(weight):
    return lambda inputs, target: ((inputs @ weight - target) ** 2).mean()


def test_minimize_finds_the_least_squares():
    rng = np.random.default_rng(0)
    inputs = torch.as_tensor(rng.normal(size=(60, 3)))
    target = inputs @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    weight = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    loss = squared_error(weight)
    before = float(loss(inputs, target).detach())
    with seeded(0):
        train([weight], lambda: (inputs, target), loss, epochs=60, batch_size=16, learning_rate=0.1)
    assert float(loss(inputs, target).detach()) < 1e-3 * before
    assert_allclose(weight.detach().numpy(), [1.0, -2.0, 0.5], atol=0.05)


def test_every_epoch_draws_anew_and_sees_every_row_once_in_batches():
    weight = torch.zeros(1, requires_grad=True)
    epochs: list[list[Any]] = []
    ended = []

    def draw():
        epochs.append([])
        return (torch.arange(10.0) + 100 * len(epochs),)

    def loss(batch):
        epochs[-1].append(batch)
        return (weight * batch).sum()

    with seeded(0):
        train(
            [weight],
            draw,
            loss,
            epochs=3,
            batch_size=4,
            learning_rate=0.01,
            after_epoch=lambda: ended.append(len(epochs)),
        )
    assert ended == [1, 2, 3]
    assert [[len(batch) for batch in epoch] for epoch in epochs] == [[4, 4, 2]] * 3
    orders = [torch.cat(epoch).numpy() - 100 * k for k, epoch in enumerate(epochs, start=1)]
    for order in orders:
        assert_array_equal(np.sort(order), np.arange(10))
    assert len({tuple(order) for order in orders}) > 1  # shuffled


def test_no_epochs_no_change():
    weight = torch.ones(3, requires_grad=True)
    train([weight], lambda: (torch.ones(2, 3),), lambda x: (x @ weight).sum(), epochs=0, batch_size=1, learning_rate=1)
    assert torch.equal(weight, torch.ones(3))


def test_weights_decay_towards_zero():
    weight = torch.ones(3, requires_grad=True)
    with seeded(0):
        train(
            [weight],
            lambda: (torch.zeros(4, 3),),
            lambda x: (x @ weight).sum(),
            epochs=20,
            batch_size=4,
            learning_rate=0.01,
            weight_decay=0.1,
        )
    assert (weight < 0.95).all()


def test_torch_is_handed_out_where_it_is_installed():
    assert import_torch("anything", "something else") is torch


def test_the_error_for_a_missing_torch_names_the_extra_and_what_works_without(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        AskwiseError, match=r'policy="rl" .*pip install "askwise\[torch\]".*: policy="greedy"\.(\n|$)'
    ) as found:
        import_torch('policy="rl"', 'policy="greedy"')
    assert found.value.__cause__ is None
    assert found.value.__suppress_context__
