"""A network trained under masks: its inputs are the observed cells and the mask, for any subset."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from askwise.errors import InvalidInput
from askwise.model.modules import FrozenModule, is_torch_module
from askwise.networks import CellCoder, Layers, adam, import_torch, relu_network, seeded, train
from askwise.parameters import POSITIVE, Choice, Flag, Number, Whole, check_limits, within
from askwise.predict.adapters import LinearLayer, ScaleAndShift
from askwise.predict.base import SubsetPredictor
from askwise.predict.reparametrized import train_adapter
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows
from askwise.table.subsets import check_mask, sample

DrawMasks = Callable[[np.ndarray, np.random.Generator], np.ndarray]
MakeNetwork = Callable[[int, int], Any]


@dataclass(eq=False, repr=False)
class MaskTrainedPredictor(SubsetPredictor):
    r"""A fresh classifier trained under masks, as most baselines are: the paper's AdMLP, and AdReMLP.

    .. math:: \theta^* = \arg\min_\theta E_S\, E_{x, y}\, l(f_\theta(x_S), y)

    The wrapped model is used for `predict_full` at most: it is a comparison with a model trained for subsets.

    Parameters
    ----------
    estimator
        The classifier to wrap; see `SubsetPredictor`.
    masks
        ``"random"`` (Eq. 1: random size, then a random subset), or a function ``(values, generator) -> mask per
        column``, such as `askwise.acquisition.PolicyMasks`, which draws the subsets that a policy visits (Eq. 4).
    reparametrized
        Train a subset-dependent scale and shift of the network's last layer afterwards (AdReMLP); of its logits where
        `network` is given.
    network
        A function ``(number of inputs, number of classes) -> torch.nn.Module`` that returns the network to train, or
        a module, a copy of which is trained. Its inputs are scaled numbers, one-hot categories and the mask in
        single precision, its outputs logits. None: one hidden ReLU layer of `width` units.
    width, epochs, learning_rate, batch_size, weight_decay
        Width of the hidden layer; training by Adam with new masks in each epoch.
    hidden, gate, holdout
        Width of the network that reads the mask, whether it is kept only where it helps, and the share of rows that
        judge this, when `reparametrized`; see `ReparametrizedPredictor`.
    reference
        Whose answer on the full row `predict_full` is: that of the ``"wrapped"`` model, or the network's ``"own"``, as
        in the paper.
    random_state, progress
        Seed, and whether to show a progress bar.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import numpy as np
    >>> from askwise.predict import MaskTrainedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = MaskTrainedPredictor(model, epochs=10, random_state=0).fit(X, y)
    >>> only_first = np.array([[True, False, False, False]])
    >>> proba = predictor.predict_proba(X[[120]], only_first)
    >>> proba.shape
    (1, 3)
    """

    slow_to_fit = True
    stores_rows = False

    estimator: Any
    _: KW_ONLY
    masks: str | DrawMasks = "random"
    reparametrized: bool = within(Flag(), False)
    network: MakeNetwork | None = None
    width: int = within(Whole(1), 100)
    epochs: int = within(Whole(0), 100)
    learning_rate: float = within(POSITIVE, 1e-3)
    batch_size: int = within(Whole(1), 64)
    weight_decay: float = within(Number(), 1e-4)
    hidden: int = within(Whole(1), 64)
    gate: bool = within(Flag(), True)
    holdout: float = within(Number(0, 1, above=True, below=True), 0.25)
    reference: str = within(Choice(("wrapped", "own")), "wrapped")
    random_state: Any = None
    progress: bool | str = False

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        import_torch("MaskTrainedPredictor", "ConditionalPredictor")
        if not callable(self.masks) and not (isinstance(self.masks, str) and self.masks == "random"):
            raise InvalidInput(f'masks must be "random" or a function (values, generator) -> mask; got {self.masks!r}.')
        if self.network is not None and not callable(self.network):
            raise InvalidInput(
                "network must be a function (n_inputs, n_classes) -> torch.nn.Module, or a module; got "
                f"{self.network!r}."
            )
        check_limits(self)
        rng = generator(self.random_state)
        self.coder_ = CellCoder(rows, self.schema_)
        with seeded(seed_from(rng)):
            self.network_ = self._train(rows, y, rng)
        if self.reparametrized:
            adapter = ScaleAndShift(self.network_)
            self.adapter_, self.adaptation_report_ = train_adapter(adapter, self.coder_, rows, y, self._unchanged, self)
            self.kept_ = self.adaptation_report_["kept"].to_numpy()

    def _train(self, rows: EncodedRows, y: np.ndarray, rng: np.random.Generator) -> _Served:
        def draw_masks() -> np.ndarray:
            if callable(self.masks):
                return check_mask(self.masks(rows.values, rng), rows.values.shape, "masks")
            return sample(len(rows), rows.values.shape[1] + 1, rng)[:, :-1]

        n_classes = len(self.classes_)
        if self.network is None:
            return _ServedLayers(train_under_masks(self.coder_, rows, y, n_classes, draw_masks, self))
        network = self._own_network(self.coder_.column.size, n_classes)
        _train_network(network, self.coder_, rows, y, draw_masks, self)
        return _ServedModule(network, n_classes)

    def _own_network(self, n_inputs: int, n_classes: int) -> Any:
        given: Any = self.network
        made = copy.deepcopy(given) if is_torch_module(given) else given(n_inputs, n_classes)
        if not is_torch_module(made):
            raise InvalidInput(f"network must return a torch.nn.Module; got {type(made).__name__}.")
        made = made.float()
        try:
            shape = _ServedModule(made, n_classes).features(np.zeros((2, n_inputs))).shape
        except RuntimeError as error:
            raise InvalidInput(f"network must take rows of shape (n, {n_inputs}); it fails on them: {error}") from error
        if shape != (2, n_classes):
            raise InvalidInput(f"network must return logits of shape (n, {n_classes}); got {shape} for 2 rows.")
        return made.train()

    def full_proba(self, rows: EncodedRows) -> np.ndarray:
        """`predict_full` of encoded rows."""
        return self.proba(rows) if self.reference == "own" else super().full_proba(rows)

    def _unchanged(self, rows: EncodedRows) -> np.ndarray:
        logits = self.network_.features(self.coder_(rows)) @ self.network_.weight + self.network_.bias
        return np.asarray(softmax(logits, axis=1))

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        proba = self._unchanged(rows)
        if self.reparametrized:
            adapted = self.kept_[rows.observed.sum(axis=1)]
            if adapted.any():
                seen = rows.take(adapted)
                proba[adapted] = self.adapter_.proba(self.adapter_.inputs(self.coder_(seen)), seen.observed)
        return proba


def train_under_masks(
    coder: CellCoder,
    rows: EncodedRows,
    y: np.ndarray,
    n_classes: int,
    draw_masks: Callable[[], np.ndarray],
    options: Any,
) -> Layers:
    """One hidden ReLU layer that classifies rows under masks per column (N, D), drawn anew for each epoch.

    `options` has the `width`, `epochs`, `batch_size`, `learning_rate`, `weight_decay` and `progress` of
    `MaskTrainedPredictor`.
    """
    network = relu_network([coder.column.size, options.width, n_classes])
    _train_network(network, coder, rows, y, draw_masks, options)
    return Layers.from_torch(network, "relu")


def _train_network(
    network: Any,
    coder: CellCoder,
    rows: EncodedRows,
    y: np.ndarray,
    draw_masks: Callable[[], np.ndarray],
    options: Any,
) -> None:
    import torch

    labels = torch.as_tensor(y)
    train(
        network.parameters(),
        lambda: (torch.as_tensor(coder(rows.masked(draw_masks())), dtype=torch.float32), labels),
        lambda inputs, target: torch.nn.functional.cross_entropy(network(inputs), target),
        epochs=options.epochs,
        description="training under masks",
        **adam(options),
    )


class _Served(LinearLayer):
    """A trained network as its last layer and the inputs of that layer."""

    def around(self, model: Any) -> Self:
        return self  # its answers do not involve the wrapped model


class _ServedLayers(_Served):
    """Inference from arrays, without torch."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.weight, self.bias = layers.weights[-1], layers.biases[-1]

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return self.layers.hidden(inputs)


class _ServedModule(_Served):
    """Any torch module: its logits, and the identity."""

    def __init__(self, module: Any, n_classes: int) -> None:
        self.module = FrozenModule(module, n_classes, "logits")
        self.weight, self.bias = np.eye(n_classes), np.zeros(n_classes)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            return np.asarray(self.module.logits(inputs).double().cpu().numpy())
