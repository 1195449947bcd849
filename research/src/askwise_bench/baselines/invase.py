"""INVASE: a selector that reads the full row chooses the features that a predictor sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from askwise.networks import CellCoder, Layers, adam, import_torch, relu_network, seeded, train
from askwise.parameters import POSITIVE, WIDTHS, Flag, Number, Whole, within
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample
from askwise_bench.baselines.base import FullRowBaseline, FullRowPolicy


@dataclass(kw_only=True, eq=False, repr=False)
class INVASE(FullRowBaseline):
    r"""Instance-wise variable selection (Yoon, Jordon, van der Schaar, ICLR 2019), bought under a budget.

    Three networks are trained together. A selector reads the full row x and gives each feature a probability
    :math:`\pi_i(x)`; a set s of features is drawn from it; a predictor f sees :math:`x_s` only; a baseline b sees
    x. The selector follows the policy gradient of

    .. math:: E_{s \sim \pi(x)} [\ell(f(x_s), y) - \ell(b(x), y)] + \lambda\, E\, \|s\|_0 / M

    with the cross-entropy :math:`\ell`. Features are bought in the order of :math:`\pi_i(x)` per price until the
    budget is spent. The selector reads cells that have not been paid for, so the method cannot be used in practice.

    Deviations: 1. The original selects every feature with a probability above one half; here the probabilities rank
    the features until the budget is spent. 2. The predictor also learns on random subsets (`random_masks`), since
    a budget leads to sets that the selector never draws. 3. Networks see the mask beside the cells; a category
    is chosen as a whole. 4. No batch normalization, so that each network is a stack of plain layers. 5. Fewer steps
    at a higher learning rate (theirs: 10,000 at 1e-4). 6. Features missing in a row are never drawn.

    Parameters
    ----------
    sparsity
        :math:`\lambda`, the cost of selecting all features, in units of the loss.
    selector, predictor
        Widths of the hidden ReLU layers; the baseline is as wide as the predictor.
    random_masks
        Whether the predictor also learns on random subsets.
    steps, batch_size, learning_rate, weight_decay
        Steps of Adam, and its settings.
    costs, groups, random_state, progress
        As in `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import INVASE
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = INVASE(steps=20, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    sparsity: float = within(Number(0), 0.1)
    selector: Sequence[int] = within(WIDTHS, (100, 100))
    predictor: Sequence[int] = within(WIDTHS, (200, 200))
    random_masks: bool = within(Flag(), True)
    steps: int = within(Whole(0), 2000)
    batch_size: int = within(Whole(1), 128)
    learning_rate: float = within(POSITIVE, 1e-3)
    weight_decay: float = within(Number(0), 2e-3)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        import_torch("INVASE", "DynamicFeatureSelector")
        self.coder_ = CellCoder(rows, self.schema_)
        with seeded(seed_from(rng)):
            self.selector_layers_, self.predictor_layers_ = self._play(rows, y, rng)
        return self._predictor(self._answer), FullRowPolicy(self.selection_probability)

    def selection_probability(self, rows: EncodedRows) -> np.ndarray:
        """The selector's probability of each feature for encoded rows (n, D), (n, M)."""
        return np.asarray(expit(self.selector_layers_(self.coder_(rows))))

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        return np.asarray(softmax(self.predictor_layers_(self.coder_(rows)), axis=1))

    def _play(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[Layers, Layers]:
        """Train the three networks; returns selector and predictor."""
        import torch

        full_rows = torch.as_tensor(self.coder_(rows), dtype=torch.float32)
        had = torch.as_tensor(self.schema_.any_column(rows.observed), dtype=torch.float32)
        (n, n_inputs), n_features = full_rows.shape, had.shape[1]
        game = _Game(n_inputs, n_features, len(self.classes_), self.schema_.owner[self.coder_.column], self)
        labels = torch.as_tensor(y)

        def draw() -> tuple[Any, ...]:
            random = sample(n, n_features + 1, rng)[:, :-1]
            return full_rows, had, labels, torch.as_tensor(random, dtype=torch.float32)

        epochs, said = max(1, ceil(self.steps / ceil(n / self.batch_size))), "training selector and predictor"
        train(game.parameters(), draw, game.loss, epochs=epochs, description=said, **adam(self))
        return Layers.from_torch(game.selector, "relu"), Layers.from_torch(game.predictor, "relu")


class _Game:
    """Selector, predictor and baseline, and the loss whose gradient moves each of them by its own part.

    Parameters
    ----------
    n_inputs, n_features, n_classes
        Sizes of a coded row, of a selection and of an answer.
    owner
        (n_inputs,) the feature that each input belongs to.
    options
        Gives the widths, `sparsity` and `random_masks`.
    """

    def __init__(self, n_inputs: int, n_features: int, n_classes: int, owner: np.ndarray, options: INVASE) -> None:
        import torch

        self.owner = torch.as_tensor(owner)
        self.options = options
        self.selector = relu_network([n_inputs, *options.selector, n_features])
        self.predictor = relu_network([n_inputs, *options.predictor, n_classes])
        self.baseline = relu_network([n_inputs, *options.predictor, n_classes])

    def parameters(self) -> list[Any]:
        return [*self.selector.parameters(), *self.predictor.parameters(), *self.baseline.parameters()]

    def loss(self, rows: Any, had: Any, labels: Any, random: Any) -> Any:
        """Sum of the three losses; terms that a network must not be trained by are detached."""
        import torch
        from torch.nn.functional import cross_entropy

        logits = self.selector(rows)
        chosen = torch.bernoulli(torch.sigmoid(logits.detach())) * had
        of_predictor = cross_entropy(self._predict(rows, chosen), labels, reduction="none")
        of_baseline = cross_entropy(self.baseline(rows), labels, reduction="none")
        of_selector = self._selector_loss(logits, chosen, had, (of_predictor - of_baseline).detach())
        total = (of_predictor + of_baseline + of_selector).mean()
        if self.options.random_masks:
            total = total + cross_entropy(self._predict(rows, random * had), labels)
        return total

    def _predict(self, rows: Any, chosen: Any) -> Any:
        """Logits from the chosen features: a hidden cell and its mask entry are 0 for a coder, too."""
        return self.predictor(rows * chosen[:, self.owner])

    def _selector_loss(self, logits: Any, chosen: Any, had: Any, excess: Any) -> Any:
        """Log probability of the draw, weighted by what it cost, and the exact mean of the share selected, (n,)."""
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits

        log_policy = -(binary_cross_entropy_with_logits(logits, chosen, reduction="none") * had).sum(dim=1)
        return excess * log_policy + self.options.sparsity * (torch.sigmoid(logits) * had).mean(dim=1)
