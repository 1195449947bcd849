"""TabNet with a budget: its attention on the full row ranks the features that are bought."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.errors import AskwiseError, InvalidInput
from askwise.networks import CellCoder, seeded
from askwise.parameters import POSITIVE, Flag, Number, Whole, within
from askwise.policy.base import Policy
from askwise.predict.base import SubsetPredictor
from askwise.progress import track
from askwise.randomness import seed_from
from askwise.table.rows import EncodedRows
from askwise.table.schema import Schema
from askwise.table.subsets import sample
from askwise_bench.baselines.base import FullRowBaseline, FullRowPolicy

VIRTUAL_BATCH = 128


@dataclass(kw_only=True, eq=False, repr=False)
class TabNet(FullRowBaseline):
    r"""TabNet (Arik and Pfister, AAAI 2021, as `pytorch-tabnet` has it) with a budget.

    In each of its decision steps b, TabNet puts sparse attention :math:`M_b` on the features of a row and adds
    :math:`\eta_b` (the sum of the step's positive outputs) to its decision. Its importance of feature i in a row,

    .. math:: \sum_b \eta_b(x)\, M_{b, i}(x),

    ranks the features, which are bought in that order per price until the budget is spent. The prediction is that
    of the same network on the features bought, with 0 for the others: the mean of a scaled number, no category.
    The attention reads cells that have not been paid for, so the method cannot be used in practice.

    Deviations: 1. The original predicts from full rows and has no budget. 2. It is trained on random subsets
    (`masked`), with the same zeros; without that its predictions from few features are poor, since a row of means is
    unlike any training row. 3. Categories are one-hot cells that share one attention, as do the columns of a group (the
    original embeds categories). 4. No early stopping, which would take training rows from small tables.

    Parameters
    ----------
    width, n_steps, gamma, sparsity
        Width of the decision and of the attention (`n_d` and `n_a`), number of decision steps, how freely a feature
        is used again in later steps, and weight of the sparsity of the attention (`lambda_sparse`).
    masked
        Whether the training rows have random subsets of the features hidden.
    epochs, batch_size, learning_rate
        Training by Adam.
    costs, groups, random_state, progress
        As in `Baseline`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from askwise_bench.baselines import TabNet
    >>> X, y = load_iris(return_X_y=True)
    >>> rival = TabNet(epochs=2, random_state=0).fit(X, y)
    >>> rival.acquire(X[:2], budget=2).order.shape
    (2, 2)
    """

    width: int = within(Whole(1), 8)
    n_steps: int = within(Whole(1), 3)
    gamma: float = within(Number(1), 1.3)
    sparsity: float = within(Number(0), 1e-3)
    masked: bool = within(Flag(), True)
    epochs: int = within(Whole(0), 100)
    batch_size: int = within(Whole(1), 1024)
    learning_rate: float = within(POSITIVE, 0.02)

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> tuple[SubsetPredictor, Policy]:
        if len(rows) < 2:
            raise InvalidInput(f"TabNet normalizes over batches and needs 2 rows or more; got {len(rows)}.")
        self.coder_ = _FeatureCells(rows, self.schema_)
        with seeded(seed_from(rng)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library: its device, and that there is no early stopping
            self.network_ = self._trained_network(self.coder_(rows), y, rng)
        return self._predictor(self._answer), FullRowPolicy(self.importance)

    def _trained_network(self, cells: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
        make = tabnet_classifier()
        model = make(
            n_d=self.width,
            n_a=self.width,
            n_steps=self.n_steps,
            gamma=self.gamma,
            lambda_sparse=self.sparsity,
            grouped_features=self.coder_.shared_cells(),
            optimizer_params={"lr": self.learning_rate},
            seed=seed_from(rng),
            device_name="cpu",
            verbose=0,
        )
        batch, virtual = _batch_sizes(len(cells), self.batch_size)
        model.fit(
            cells,
            y,
            max_epochs=self.epochs,
            patience=0,
            batch_size=batch,
            virtual_batch_size=virtual,
            drop_last=True,
            augmentations=_RandomHiding(self.coder_.owner, rng) if self.masked else None,
            callbacks=[_epoch_bar(self.epochs, self.progress)],
            compute_importance=False,
        )
        return model.network

    def importance(self, rows: EncodedRows) -> np.ndarray:
        """Importance of each feature for encoded rows (n, D), by the attention, (n, M)."""
        import torch

        with torch.no_grad():
            of_cells = self.network_.forward_masks(torch.as_tensor(self.coder_(rows)))[0]
        return self.coder_.by_feature(of_cells.double().numpy())

    def _answer(self, rows: EncodedRows) -> np.ndarray:
        import torch

        with torch.no_grad():
            logits = self.network_(torch.as_tensor(self.coder_(rows)))[0]
        return np.asarray(torch.softmax(logits.double(), dim=1).numpy())


class _FeatureCells:
    """Rows as scaled numbers and one-hot categories, (n, P), without a mask; a hidden cell is 0."""

    def __init__(self, rows: EncodedRows, schema: Schema) -> None:
        self.coder = CellCoder(rows, schema)
        self.owner = schema.owner[self.coder.column[: -len(schema.columns)]]  # (P,), the feature of each cell
        self.features = np.arange(len(schema.features))

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        return self.coder(rows)[:, : len(self.owner)].astype(np.float32)

    def by_feature(self, of_cells: np.ndarray) -> np.ndarray:
        """Sum over the cells of each feature, (n, P) -> (n, M)."""
        return np.asarray(of_cells @ (self.owner[:, None] == self.features))

    def shared_cells(self) -> list[list[int]]:
        """The cells of each feature that has several."""
        cells = [np.flatnonzero(self.owner == i).tolist() for i in self.features]
        return [group for group in cells if len(group) > 1]


class _RandomHiding:
    """Hides random subsets of the features in each batch; the library calls it an augmentation."""

    def __init__(self, owner: np.ndarray, rng: np.random.Generator) -> None:
        self.owner = owner
        self.rng = rng

    def _set_seed(self) -> None:
        """The library would seed numpy's global generator here; this class has its own."""

    def __call__(self, cells: Any, labels: Any) -> tuple[Any, Any]:
        n_features = int(self.owner.max()) + 1
        kept = sample(len(cells), n_features + 1, self.rng)[:, :-1]
        return cells * cells.new_tensor(kept[:, self.owner]), labels


def _batch_sizes(n: int, largest: int) -> tuple[int, int]:
    """Rows per batch and per normalization: multiples, since a remainder of one row cannot be normalized."""
    largest = max(2, min(largest, n))
    virtual = min(VIRTUAL_BATCH, largest)
    return largest // virtual * virtual, virtual


def _epoch_bar(epochs: int, progress: bool | str) -> Any:
    """The progress bar as a callback of the library."""
    from pytorch_tabnet.callbacks import Callback

    class Bar(Callback):  # type: ignore[misc, unused-ignore]
        def on_train_begin(self, logs: Any = None) -> None:
            self.ticks = iter(track(range(epochs), "training TabNet", epochs, progress))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            next(self.ticks)

        def on_train_end(self, logs: Any = None) -> None:
            next(self.ticks, None)  # past the last one, so that the bar is removed

    return Bar()


def tabnet_classifier() -> Any:
    """The classifier of `pytorch-tabnet`; raises an error that names the package if it is not installed."""
    try:
        from pytorch_tabnet.tab_model import TabNetClassifier
    except ImportError:
        raise AskwiseError("TabNet needs a package that is not installed: pip install pytorch-tabnet") from None
    return TabNetClassifier
