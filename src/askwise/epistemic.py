"""What the model does not know: members around the wrapped model, and e(x_S) (Section 3.2.2 and Appendix A)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from askwise.errors import InvalidInput
from askwise.predict.base import SubsetPredictor
from askwise.predict.final_layer import FinalLayer, final_layer, split_pipeline, unfrozen
from askwise.predict.imputed import typical_row
from askwise.predict.stacked import StackedDropout, StackedModels, dropout_layers, stack
from askwise.predict.wrapped import BlackBox, FrozenModel, as_classifier, is_torch_module
from askwise.progress import track
from askwise.randomness import generator, seed_from
from askwise.uncertainty import Uncertainty, smoothed, summarize


class EpistemicEstimator(BaseEstimator):
    """Uncertainty around a fitted `SubsetPredictor`; subclasses write `_fit` and, with members, `stacked`."""

    @property
    def around_the_mean(self) -> bool:
        """Whether e is the divergence of the members from their mean (Eq. 17), not from the prediction (Eq. 13)."""
        return False

    def fit(self, predictor: SubsetPredictor, X: Any, y: Any) -> Self:
        """Prepare the members around `predictor`, from the rows it was fitted on."""
        self._separate: list[SubsetPredictor] = []
        self._fit(predictor, X, np.asarray(y))
        self._bind(predictor)
        return self

    def around(self, predictor: SubsetPredictor) -> Self:
        """The same members with another predictor's completions."""
        other = copy.copy(self)
        other._bind(predictor)
        return other

    def _bind(self, predictor: SubsetPredictor) -> None:
        """Ask the model and the members in one pass, where their answers are averages over the same completions."""
        self._predictor = predictor
        self._joint = None
        stacked = self.stacked()
        if stacked is not None and predictor.averages_the_model:
            self._joint = predictor.with_model(StackedModels([predictor.model_, stacked]))

    def assess(
        self,
        values: np.ndarray,
        mask: np.ndarray,
        *,
        leave_out: np.ndarray | None = None,
        smooth_with: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Uncertainty]:
        """The prediction for encoded rows with the mask per column, (n, C), and its uncertainties, (n,) each.

        `leave_out` as in `SubsetPredictor.predict_proba`; `smooth_with` (C,) is mixed into the prediction that
        members are compared with, so that their divergence is finite.
        """
        asked = self._ask(values, mask, leave_out)
        if np.isnan(asked).any():
            row = int(np.isnan(asked).any(axis=(0, 2)).argmax())
            raise InvalidInput(
                f"The members around the model have no answer for row {row}; is a value of it too extreme?"
            )
        proba, members = asked[0], asked[1:]
        primary = proba if smooth_with is None else smoothed(proba, smooth_with)
        return proba, summarize(primary, members)

    def members(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """(k, n, C) members' p(y | x_S)."""
        return self._ask(values, mask, None)[1:]

    def stacked(self) -> Any:
        """The members side by side as one model (`predict.stacked`); None where there are no members."""
        return None

    def _ask(self, values: np.ndarray, mask: np.ndarray, leave_out: np.ndarray | None) -> np.ndarray:
        """(1 + k, n, C): the primary prediction, then the members'."""
        if self._joint is not None:
            side_by_side = self._joint.predict_proba(values, mask, leave_out=leave_out)  # (n, (1 + k) * C)
            n_classes = len(self._predictor.classes_)
            return side_by_side.reshape(len(values), -1, n_classes).transpose(1, 0, 2)
        asked = [self._predictor, *self._separate]
        return np.stack([one.predict_proba(values, mask, leave_out=leave_out) for one in asked])

    def _fit(self, predictor: SubsetPredictor, X: Any, y: np.ndarray) -> None:
        raise NotImplementedError


def assess(
    predictor: SubsetPredictor, epistemic: EpistemicEstimator | None, values: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray, Uncertainty]:
    """The prediction from what is observed, (n, C), and how far to trust it; NaN where there are no members."""
    if epistemic is not None:
        return epistemic.assess(values, mask)
    proba = predictor.predict_proba(values, mask)
    return proba, summarize(proba)


class AuxiliaryEnsemble(EpistemicEstimator):
    r"""Auxiliary models that were trained like the wrapped one, used for uncertainty only.

    .. math:: e(x_S) = \frac{1}{k} \sum_i D_{KL}(p_{\theta_i}(y \mid x_S) \,\|\, p_\theta(y \mid x_S))

    Members have the class and the parameters of the wrapped model (of the last step of a Pipeline, whose fitted
    preparation they share), another seed, and each its own adaptation to subsets.

    Parameters
    ----------
    n_members
        How many.
    resample
        ``"bootstrap"``: a bootstrap sample per class; ``"reseed"``: the same rows, another seed.
    center
        ``"primary"``: divergence from the wrapped model's prediction (Eq. 13); ``"mean"``: from the members' mean, the
        mutual information of a plain ensemble (Eq. 17).
    estimators
        Fitted members to use instead of training some; needed for a callable or a torch module.
    random_state, n_jobs, progress
        Seed; parallel fits; whether to show a progress bar.
    """

    def __init__(
        self,
        n_members: int = 5,
        *,
        resample: str = "bootstrap",
        center: str = "primary",
        estimators: Sequence[Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = False,
    ) -> None:
        self.n_members = n_members
        self.resample = resample
        self.center = center
        self.estimators = estimators
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    @property
    def around_the_mean(self) -> bool:
        return self.center == "mean"

    def stacked(self) -> Any:
        return stack(self._models)

    def assess(self, *args: Any, **options: Any) -> tuple[np.ndarray, Uncertainty]:
        proba, found = super().assess(*args, **options)
        if self.around_the_mean:
            found = replace(found, epistemic=found.mutual_information)
        return proba, found

    def _fit(self, predictor: SubsetPredictor, X: Any, y: np.ndarray) -> None:
        if self.resample not in ("bootstrap", "reseed") or self.center not in ("primary", "mean"):
            raise InvalidInput(
                'resample must be "bootstrap" or "reseed" and center "primary" or "mean"; got '
                f"{self.resample!r} and {self.center!r}."
            )
        if self.estimators is not None:
            self.estimators_ = [as_classifier(member, predictor.classes_) for member in self.estimators]
        else:
            self.estimators_ = self._train(predictor, y)
        if not self.estimators_:
            raise InvalidInput("An ensemble needs at least one member; got none.")
        for member in self.estimators_:
            if not hasattr(member, "classes_") or not hasattr(member, "predict_proba"):
                raise InvalidInput(
                    f"estimators must be fitted classifiers with predict_proba; got {member!r}. FrozenEstimator keeps "
                    "the fit of a member where a selector is cloned, as in cross-validation."
                )
        self._models = [FrozenModel(member, predictor.schema_) for member in self.estimators_]
        for model in self._models:
            if model.classes.tolist() != predictor.classes_.tolist():
                raise InvalidInput(
                    f"Every member must know the classes {predictor.classes_.tolist()}; one: {model.classes.tolist()}."
                )
        if not predictor.averages_the_model:
            self._separate = self._adapted(predictor, y)

    def _adapted(self, predictor: SubsetPredictor, y: np.ndarray) -> list[SubsetPredictor]:
        """Each member in a predictor of its own; those trained here with another seed and on rows of their own."""
        rng = generator(self.random_state)
        adapted = []
        for member in self.estimators_:
            own, rows = clone(predictor).set_params(estimator=None), np.arange(len(y))
            if self.estimators is None:
                own = _reseeded(own, seed_from(rng))
                rows = _bootstrap(y, rng) if self.resample == "bootstrap" else rows
            own.set_params(estimator=member)
            table = predictor.schema_.decode(predictor.training_values_[rows])
            adapted.append(own.fit(table, y[rows], schema=predictor.schema_))
        return adapted

    def _train(self, predictor: SubsetPredictor, y: np.ndarray) -> list[Any]:
        if isinstance(unfrozen(predictor.estimator_), BlackBox):
            raise InvalidInput(
                'epistemic="ensemble" trains further members, which a callable or a torch module does not allow. Use '
                'epistemic="distance" (any model), "dropout" (torch modules with dropout), or give trained members: '
                "AuxiliaryEnsemble(estimators=[...])."
            )
        if self.n_members < 1:
            raise InvalidInput(f"n_members must be at least 1; got {self.n_members}.")
        if not can_train_members(predictor, y):
            raise InvalidInput(
                'epistemic="ensemble" trains further members and needs rows of every class that the model takes '
                '(complete ones, unless it takes missing cells). Give more rows, or use epistemic="distance".'
            )
        rng = generator(self.random_state)
        rows = predictor.training_rows_for_models()
        table, labels = predictor.model_.table(predictor.training_values_[rows]), y[rows]
        steps, classifier = split_pipeline(predictor.estimator_)
        inputs = table if steps is None else steps.transform(table)
        jobs = []
        for _ in range(self.n_members):
            chosen = _bootstrap(labels, rng) if self.resample == "bootstrap" else np.arange(len(labels))
            member = _reseeded(clone(classifier), seed_from(rng))
            jobs.append(delayed(_fit_quietly)(member, _take(inputs, chosen), labels[chosen]))
        fits = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        trained = list(track(fits, "training members", self.n_members, self.progress))
        if steps is None:
            return trained
        return [Pipeline([*steps.steps, ("classifier", member)]) for member in trained]


class MCDropout(EpistemicEstimator):
    """Members of a torch module with dropout: the same network under `n_samples` fixed dropout masks."""

    def __init__(self, n_samples: int = 30, *, random_state: Any = None) -> None:
        self.n_samples = n_samples
        self.random_state = random_state

    def stacked(self) -> Any:
        return self._stacked

    def _fit(self, predictor: SubsetPredictor, X: Any, y: np.ndarray) -> None:
        box = unfrozen(predictor.estimator_)
        if not (isinstance(box, BlackBox) and is_torch_module(box.function)):
            raise InvalidInput(
                f'epistemic="dropout" needs a torch.nn.Module with dropout layers; got {type(box).__name__}. Use '
                'epistemic="ensemble" (models that can be refitted) or "distance" (any model).'
            )
        if not dropout_layers(box.function):
            raise InvalidInput(
                'epistemic="dropout" needs dropout layers (p > 0), and the wrapped module has none. Use '
                'epistemic="distance", or give trained members: AuxiliaryEnsemble(estimators=[...]).'
            )
        if self.n_samples < 1:
            raise InvalidInput(f"n_samples must be at least 1; got {self.n_samples!r}.")
        if not predictor.averages_the_model:
            raise InvalidInput('epistemic="dropout" goes with adaptation="conditional" or "mean".')
        seed = seed_from(generator(self.random_state))
        self._stacked = StackedDropout(predictor.model_, self.n_samples, seed)


class FeatureDistance(EpistemicEstimator):
    """How far a case is from the training data in the model's feature space; any model, nothing trained.

    The feature space is what the last linear layer sees (torch modules, MLPClassifier, LogisticRegression) or the
    model's log probabilities and scaled inputs together (any other). Hidden cells are filled with the typical row.
    The mean distance to the `n_neighbors` nearest training rows is given in units of its median over the training
    rows. There are no members: the other ensemble quantities are NaN.
    """

    def __init__(self, n_neighbors: int = 10, *, max_rows: int = 2000, random_state: Any = None) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def assess(
        self,
        values: np.ndarray,
        mask: np.ndarray,
        *,
        leave_out: np.ndarray | None = None,
        smooth_with: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Uncertainty]:
        proba = self._predictor.predict_proba(values, mask, leave_out=leave_out)
        return proba, replace(summarize(proba), epistemic=self.distance(values, mask, leave_out))

    def distance(self, values: np.ndarray, mask: np.ndarray, leave_out: np.ndarray | None = None) -> np.ndarray:
        """(n,) distance of what is known of each row to the training data; `leave_out` as in `predict_proba`."""
        features = self._features(np.where(mask, values, self._typical))
        if leave_out is None:
            return np.asarray(self._search.kneighbors(features)[0].mean(axis=1) / self._unit)
        k = self._search.n_neighbors
        distances, nearest = self._search.kneighbors(features, n_neighbors=k + 1)
        own = self._rows[nearest] == leave_out[:, None]
        own[~own.any(axis=1), k] = True  # the row itself is not among them: leave the farthest out
        return np.asarray(distances[~own].reshape(-1, k).mean(axis=1) / self._unit)

    def _fit(self, predictor: SubsetPredictor, X: Any, y: np.ndarray) -> None:
        from sklearn.neighbors import NearestNeighbors

        values = predictor.training_values_
        if self.n_neighbors < 1 or self.max_rows < 2:
            raise InvalidInput(
                f"n_neighbors must be at least 1; got {self.n_neighbors!r}; max_rows at least 2; got {self.max_rows!r}."
            )
        rows = self._rows = generator(self.random_state).permutation(len(values))[: self.max_rows]
        self._typical = typical_row(values, predictor.schema_.is_category)
        self._model = predictor.model_
        self._scale = np.maximum(np.nanstd(values, axis=0), 1e-12)
        completed = np.where(np.isnan(values[rows]), self._typical, values[rows])
        try:
            self._layer: FinalLayer | None = final_layer(predictor.model_, completed[:20])
        except InvalidInput:
            self._layer = None
        features = self._features(completed)
        k = min(self.n_neighbors, len(features) - 1)
        self._search = NearestNeighbors(n_neighbors=k).fit(features)
        typical = float(np.median(self._search.kneighbors()[0].mean(axis=1)))
        self._unit = typical if typical > 0 else 1.0

    def _features(self, completed: np.ndarray) -> np.ndarray:
        if self._layer is not None:
            return self._layer.features(completed)
        scaled = (completed - self._typical) / self._scale
        return np.hstack([scaled / np.sqrt(scaled.shape[1]), np.log(np.maximum(self._model(completed), 1e-3))])


def can_train_members(predictor: SubsetPredictor, y: np.ndarray) -> bool:
    """Whether models like the wrapped one can be trained, and on rows of every class, from what `fit` was given."""
    if not hasattr(unfrozen(predictor.estimator_), "fit") or not hasattr(predictor.estimator_, "get_params"):
        return False
    usable = y[predictor.training_rows_for_models()]
    return set(np.unique(usable).tolist()) == set(predictor.classes_.tolist())


def suitable_epistemic(predictor: SubsetPredictor, y: np.ndarray) -> str:
    """What ``epistemic="auto"`` takes: an ensemble where members can be trained, else dropout, else distance."""
    box = unfrozen(predictor.estimator_)
    if not isinstance(box, BlackBox):
        return "ensemble" if can_train_members(predictor, y) else "distance"
    drops = is_torch_module(box.function) and dropout_layers(box.function) and predictor.averages_the_model
    return "dropout" if drops else "distance"


def _bootstrap(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Row indices drawn with replacement within each class, so that no member misses a rare class."""
    by_class = [np.flatnonzero(y == label) for label in np.unique(y)]
    return np.sort(np.concatenate([rows[rng.integers(len(rows), size=len(rows))] for rows in by_class]))


def _reseeded(estimator: Any, seed: int) -> Any:
    names = [name for name in estimator.get_params() if name == "random_state" or name.endswith("__random_state")]
    return estimator.set_params(**dict.fromkeys(names, seed))


def _fit_quietly(estimator: Any, X: Any, y: np.ndarray) -> Any:
    """Fit a member; that it stops at the same number of iterations as the wrapped model is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y)


def _take(table: Any, rows: np.ndarray) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
