"""MC dropout members of image networks, also with a reparametrized last layer, from one pass of the backbone."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from askwise.epistemic.base import EpistemicEstimator
from askwise.epistemic.dropout import under_dropout
from askwise.errors import InvalidInput
from askwise.images.grid import ImageSchema
from askwise.images.predictors import N_PROBES, PatchNetwork, fill_image, image_layer
from askwise.model.final_layer import FinalLayer, LastLinear, torch_module
from askwise.model.modules import DropoutMasks, dropout_layers
from askwise.model.parts import unfrozen
from askwise.parameters import Number, Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief
from askwise.randomness import generator, seed_from
from askwise.table.rows import EncodedRows


class PatchDropout(EpistemicEstimator):
    """Members of an image network under `n_samples` fixed dropout masks (rate 0.2 and 30 samples in the paper).

    If the only dropout is right before the last layer, or there is none (it is then added there at `rate`), all members
    share one pass of the backbone: a member is a last layer under dropout, scaled and shifted as the predictor's own.
    A network with dropout elsewhere is evaluated once per member.

    Parameters
    ----------
    n_samples
        Number of members.
    rate
        Dropout rate for a network without dropout layers.
    random_state
        Seed of the masks.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.vision import PatchDropout, PatchGrid, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> selector = DynamicFeatureSelector(net, groups=PatchGrid(2, 2), epistemic=PatchDropout(5), random_state=0)
    >>> selector.fit(images, y).uncertainty(images[:3]).epistemic.shape
    (3,)
    """

    def __init__(self, n_samples: int = 30, *, rate: float = 0.2, random_state: Any = None) -> None:
        self.n_samples = n_samples
        self.rate = rate
        self.random_state = random_state

    def joined(self, predictor: SubsetPredictor) -> SubsetPredictor:
        return predictor.with_model(self._beside) if predictor.averages_the_model else predictor

    def extended(self, belief: Belief, rows: EncodedRows, leave_out: np.ndarray | None) -> Belief:
        predictor = self._predictor
        assert isinstance(predictor, PatchNetwork)
        features = predictor.features(rows) if belief.features is None else belief.features
        if self._thinned:
            filled = rows.filled(predictor.fill_)
            seen = [layer.features(filled) for layer in self._thinned]
            return belief.with_members([predictor.answers(own, rows, self._weights[0]) for own in seen])
        return belief.with_members([predictor.answers(features, rows, weight) for weight in self._weights])

    def fewer(self, n_members: int) -> Self:
        """The first `n_members` of the fitted members."""
        other = copy.copy(self)
        if self._thinned:
            other._thinned = self._thinned[:n_members]
        else:
            other._weights = self._weights[:n_members]
        other._beside = _BesideTheModel(self._predictor.model_, self._beside.layer, other._weights, other._thinned)
        return other

    def _fit(self, predictor: SubsetPredictor) -> None:
        check_limits(self, {"n_samples": Whole(1), "rate": Number(0, 1, above=True, below=True)})
        if torch_module(predictor.estimator_) is None:
            raise InvalidInput(
                'epistemic="dropout" needs a torch.nn.Module; use epistemic="distance" or None for other classifiers.'
            )
        self._predictor = predictor
        if isinstance(predictor, PatchNetwork):
            layer = predictor.layer_
        else:
            rows, schema = predictor.training_rows_, predictor.schema_
            assert isinstance(schema, ImageSchema)
            layer = image_layer(predictor.model_, rows, fill_image(rows, schema, "mean"))
        self._thin(layer, predictor, seed_from(generator(self.random_state)))
        self._beside = _BesideTheModel(predictor.model_, layer, self._weights, self._thinned)

    def _thin(self, layer: FinalLayer, predictor: SubsetPredictor, seed: int) -> None:
        """Last layers (k, H, C) under dropout; the layer of networks under dropout if that is elsewhere."""
        drops = dropout_layers(torch_module(layer.model.estimator))
        self._thinned: list[FinalLayer] = []
        if not drops and not isinstance(layer, LastLinear):
            raise InvalidInput(
                'epistemic="dropout" needs a network with dropout layers, or one whose last linear layer gives a logit '
                'per class. Use epistemic="distance".'
            )
        if drops and not _only_before_the_last_layer(drops, layer, predictor.training_rows_):
            masks = DropoutMasks(self.n_samples, seed)
            self._thinned = [layer.around(under_dropout(layer.model, masks.only(k))) for k in range(self.n_samples)]
            self._weights = layer.weight[None]
            return
        rate = next(iter(drops.values())).p if drops else self.rate
        kept = (np.random.default_rng(seed).random((self.n_samples, len(layer.weight), 1)) >= rate) / (1 - rate)
        self._weights = kept * layer.weight


class _BesideTheModel:
    """The model's answers and those of its members, (n, (1 + k) C), as one model on completed images."""

    def __init__(self, model: Any, layer: FinalLayer, weights: np.ndarray, thinned: list[FinalLayer]) -> None:
        self.model, self.layer, self.weights, self.thinned = model, layer, weights, thinned
        self.n_outputs = model.n_outputs * (1 + (len(thinned) or len(weights)))

    def __call__(self, rows: EncodedRows) -> np.ndarray:
        features, bias = self.layer.features(rows), self.layer.bias
        logits = [features @ self.layer.weight + bias]
        if self.thinned:
            logits += [layer.features(rows) @ self.weights[0] + bias for layer in self.thinned]
        else:
            logits += [features @ weight + bias for weight in self.weights]
        return np.hstack([softmax(part, axis=1) for part in logits])


def _only_before_the_last_layer(drops: dict[str, Any], layer: FinalLayer, rows: EncodedRows) -> bool:
    """Whether the output of the only dropout layer is the features, so that dropout scales the features."""
    import torch

    if len(drops) > 1 or not isinstance(layer, LastLinear):
        return False
    factors = np.linspace(0.5, 1.5, len(layer.weight))

    def scaled(name: str, part: Any, given: Any, output: Any) -> Any:
        return output * torch.as_tensor(factors).to(output) if name in drops else output

    images = layer.model.table(rows.take(slice(N_PROBES)).filled(np.zeros(1)))
    module = unfrozen(layer.model.estimator).frozen_module
    try:
        changed = module.layer_inputs(images, layer.name, scaled)
    except RuntimeError:  # the numbers of dropped units and of features differ
        return False
    return bool(np.allclose(changed, module.layer_inputs(images, layer.name) * factors, rtol=1e-4, atol=1e-5))
