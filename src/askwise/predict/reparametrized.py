r"""A frozen model whose parameters depend on the subset: :math:`\theta_S = R_\psi(\theta, S)` (Eqs. 6 and 7)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from askwise.model.final_layer import Output, final_layer
from askwise.networks import adam, import_torch, seeded, train
from askwise.parameters import POSITIVE, Choice, Flag, Number, Whole, check_limits, within
from askwise.predict.adapters import Adapter, LowRank, ScaleAndShift
from askwise.predict.base import SubsetPredictor
from askwise.predict.calibration import log_losses
from askwise.predict.imputed import typical_row
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows
from askwise.table.subsets import sample


@dataclass(eq=False, repr=False)
class ReparametrizedPredictor(SubsetPredictor):
    r"""The wrapped model on mean-imputed rows, reparametrized by the mask.

    Initialized to the imputed model and trained on random masks to lower the expected log loss (Eq. 7). It is used
    only for subset sizes at which it lowers the loss on held-out rows. What a mask changes is in `adapters`: for the
    last layer, `ScaleAndShift`.

    Parameters
    ----------
    estimator
        The classifier to wrap; see `SubsetPredictor`.
    kind
        ``"output"`` (scale and shift of the log probabilities: any model), ``"last-layer"`` (scale of the inputs of
        the last linear layer and shift of its logits: torch modules, MLPClassifier, LogisticRegression, alone or at the
        end of a Pipeline) or ``"low-rank"`` (updates of all linear layers of a torch module).
    epochs, learning_rate, batch_size, weight_decay
        Training by Adam; masks are drawn anew in each epoch. The best epoch on the held-out rows is kept.
    hidden
        Width of the network that reads the mask.
    rank
        Rank of the ``"low-rank"`` updates.
    gate, holdout
        Whether the change is kept only where it helps, as judged on a share `holdout` of the rows. Without the gate, as
        in the paper, all rows train, the last epoch counts, and every incomplete row is adapted.
    random_state, progress
        Seed, and whether to show a progress bar.

    Attributes
    ----------
    adaptation_report_ : DataFrame with the held-out log loss before and after by subset size, and whether it is kept;
        without the gate the loss is that of the training rows

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import numpy as np
    >>> from askwise.predict import ReparametrizedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ReparametrizedPredictor(model, epochs=10, random_state=0).fit(X, y)
    >>> only_first = np.array([[True, False, False, False]])
    >>> proba = predictor.predict_proba(X[[120]], only_first)
    >>> proba.shape
    (1, 3)
    """

    slow_to_fit = True
    stores_rows = False

    estimator: Any
    kind: str = within(Choice(("output", "last-layer", "low-rank")), "output")
    _: KW_ONLY
    epochs: int = within(Whole(0), 100)
    learning_rate: float = within(POSITIVE, 1e-3)
    batch_size: int = within(Whole(1), 64)
    weight_decay: float = within(Number(), 1e-3)
    hidden: int = within(Whole(1), 64)
    rank: int = within(Whole(1), 4)
    gate: bool = within(Flag(), True)
    holdout: float = within(Number(0, 1, above=True, below=True), 0.25)
    random_state: Any = None
    progress: bool | str = False

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        check_limits(self)
        import_torch(f'adaptation="{self.kind}"', 'adaptation="conditional" or "mean"')
        self.fill_ = typical_row(rows, self.schema_.is_category)
        adapter = self._make_adapter(rows)
        self.adapter_, self.adaptation_report_ = train_adapter(
            adapter, lambda seen: seen.filled(self.fill_), rows, y, self._imputed, self
        )
        self.kept_ = self.adaptation_report_["kept"].to_numpy()  # by size, 0..D

    def with_model(self, model: Any) -> Self:
        """The same adaptation of another version of the model, such as one under a dropout mask."""
        other = super().with_model(model)
        other.adapter_ = self.adapter_.around(model)
        return other

    def _make_adapter(self, rows: EncodedRows) -> Adapter:
        if self.kind == "low-rank":
            return LowRank(self.model_, self.rank)
        if self.kind == "output":
            return ScaleAndShift(Output(self.model_))
        return ScaleAndShift(final_layer(self.model_, rows.take(slice(20)).filled(self.fill_)))

    def _imputed(self, rows: EncodedRows) -> np.ndarray:
        return self.model_(rows.filled(self.fill_))

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        adapted = self.kept_[rows.observed.sum(axis=1)]
        proba = np.empty((len(rows), len(self.classes_)))
        if adapted.any():
            seen = rows.take(adapted)
            proba[adapted] = self.adapter_.proba(self.adapter_.inputs(seen.filled(self.fill_)), seen.observed)
        if not adapted.all():
            proba[~adapted] = self._imputed(rows.take(~adapted))
        return proba


def train_adapter(
    adapter: Adapter,
    complete: Callable[[EncodedRows], Any],
    rows: EncodedRows,
    y: np.ndarray,
    before: Callable[[EncodedRows], np.ndarray],
    options: Any,
) -> tuple[Adapter, pd.DataFrame]:
    """Train an adapter on random masks of three quarters of the rows; validate it by subset size on the others.

    Without the gate of `options` it is trained on all rows, and the last epoch is taken for every size.

    `complete(rows)` returns the adapter's inputs for partly observed rows, `before(rows)` the unchanged answers.
    """
    import torch

    rng = generator(options.random_state)
    n_columns = rows.values.shape[1]
    order = rng.permutation(len(y))
    seed = seed_from(rng)
    trained, held = (
        train_test_split(order, test_size=options.holdout, random_state=seed) if options.gate else (order, order)
    )
    repeated = np.repeat(held, max(1, 2000 // len(held)))
    held_rows = rows.take(repeated).masked(sample(len(repeated), n_columns + 1, rng)[:, :n_columns])
    held_mask, held_inputs = held_rows.observed, np.array(adapter.inputs(complete(held_rows)))
    loss_before = log_losses(before(held_rows), y[repeated])

    def draw() -> tuple[Any, ...]:
        seen = rows.take(trained).masked(sample(len(trained), n_columns, rng))
        inputs = adapter.inputs(complete(seen))
        # Copied, because a table's own arrays are read-only, which torch warns about.
        return torch.tensor(inputs, dtype=torch.float32), torch.as_tensor(seen.observed, dtype=torch.float32), labels

    def loss(inputs: Any, mask: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(adapter.logits(inputs, mask), target)

    def judge() -> None:
        with torch.no_grad():
            logits = adapter.logits(
                torch.as_tensor(held_inputs, dtype=torch.float32), torch.as_tensor(held_mask, dtype=torch.float32)
            )
        losses = torch.nn.functional.cross_entropy(logits, held_labels, reduction="none").numpy()
        if not options.gate or losses.mean() < best["losses"].mean():
            best.update(losses=losses, state=[parameter.detach().clone() for parameter in parameters])

    with seeded(seed_from(rng)):
        labels, held_labels = torch.as_tensor(y[trained]), torch.as_tensor(y[repeated])
        parameters = adapter.build(n_columns, options.hidden)
        best: dict[str, Any] = {"losses": loss_before, "state": copy.deepcopy([p.detach() for p in parameters])}
        train(
            parameters,
            draw,
            loss,
            epochs=options.epochs,
            after_epoch=judge,
            description="adapting",
            **adam(options),
        )
        with torch.no_grad():
            for parameter, value in zip(parameters, best["state"], strict=True):
                parameter.copy_(value)
    adapter.freeze()
    report = _report(held_mask.sum(axis=1), loss_before, best["losses"], n_columns)
    return adapter, report if options.gate else report.assign(kept=report["size"] < n_columns)


def _report(sizes: np.ndarray, before: np.ndarray, after: np.ndarray, n_columns: int) -> pd.DataFrame:
    """Mean held-out loss by subset size; a size is kept if the loss of it and its neighbors together is lower after.

    A complete row is left to the unchanged model.
    """
    table = []
    for size in range(n_columns + 1):
        own, near = sizes == size, np.abs(sizes - size) <= 1
        kept = bool(size < n_columns and near.any() and after[near].mean() < before[near].mean())
        means = (before[own].mean(), after[own].mean()) if own.any() else (np.nan, np.nan)
        table.append({"size": size, "rows": int(own.sum()), "before": means[0], "after": means[1], "kept": kept})
    return pd.DataFrame(table)
