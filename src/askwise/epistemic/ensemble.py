"""Auxiliary models trained like the wrapped one (Eq. 13 and Eq. 17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from askwise.epistemic.base import EpistemicEstimator
from askwise.errors import InvalidInput
from askwise.model.black_box import BlackBox, as_classifier
from askwise.model.parts import has_resampling, reads_no_labels, split_pipeline, unfrozen
from askwise.model.refitting import can_be_cloned, fit_quietly, reseeded
from askwise.model.wrapped import FrozenModel
from askwise.parameters import Choice, Jobs, Whole, check_limits
from askwise.predict.base import SubsetPredictor
from askwise.progress import track
from askwise.randomness import generator, seed_from


@dataclass(eq=False, repr=False)
class AuxiliaryEnsemble(EpistemicEstimator):
    r"""Auxiliary models trained like the wrapped one, used for uncertainty only.

    .. math:: e(x_S) = \frac{1}{k} \sum_i D_{KL}(p_{\theta_i}(y \mid x_S) \,\|\, p_\theta(y \mid x_S))

    It is `askwise.uncertainty.epistemic_divergence` of the members (`mutual_information` around their mean).

    Members have the class and the parameters of the wrapped model (of the last step of a Pipeline, whose fitted
    preparation they share), another seed, and an adaptation to subsets each.

    Parameters
    ----------
    n_members
        Number of members.
    resample
        ``"bootstrap"``: a bootstrap sample per class; ``"reseed"``: the same rows, another seed.
    center
        ``"primary"``: divergence from the wrapped model's prediction (Eq. 13); ``"mean"``: from the members' mean, the
        mutual information of a plain ensemble (Eq. 17).
    estimators
        Fitted members to use instead of training some; needed for a callable or a torch module.
    random_state, n_jobs, progress
        Seed; parallel fits; whether to show a progress bar.

    Attributes
    ----------
    estimators_ : list of the members
    trained_on_ : (k, N) bool, whether anything in a member comes from the label of a training row; None where members
        were given, have seen the same rows, or share a preparation that may have read all labels

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise.epistemic import AuxiliaryEnsemble, BeliefModel
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ImputedPredictor(model).fit(X, y)
    >>> beliefs = BeliefModel(predictor, AuxiliaryEnsemble(3, random_state=0).fit(predictor))
    >>> beliefs.believe(predictor.schema_.encode(X[:5])).members.shape
    (3, 5, 3)
    """

    n_members: int = 5
    _: KW_ONLY
    resample: str = "bootstrap"
    center: str = "primary"
    estimators: Sequence[Any] | None = None
    random_state: Any = None
    n_jobs: int | None = None
    progress: bool | str = False

    trained_on_: ClassVar[np.ndarray | None] = None  # of members that an older version has saved

    @property
    def around_the_mean(self) -> bool:
        return self.center == "mean"

    def member_without(self, rows: np.ndarray) -> Any:
        """A member that was trained on none of the training rows at the positions `rows`; None if there is none."""
        if self.trained_on_ is None:
            return None
        unaware = np.flatnonzero(~self.trained_on_[:, rows].any(axis=1))
        return self.estimators_[unaware[0]] if len(unaware) else None

    def _fit(self, predictor: SubsetPredictor) -> None:
        y = predictor.classes_[predictor.training_labels_]
        check_limits(self, {"resample": Choice(("bootstrap", "reseed")), "center": Choice(("primary", "mean"))})
        if not isinstance(self.estimators, Sequence | None) or isinstance(self.estimators, str):
            raise InvalidInput(f"AuxiliaryEnsemble: estimators must be a list of classifiers; got {self.estimators!r}.")
        if self.estimators is None:
            self.estimators_, self.trained_on_ = self._train(predictor, y)  # type: ignore[misc]
        else:
            self.estimators_ = [as_classifier(member, predictor.classes_) for member in self.estimators]
            self.trained_on_ = None  # type: ignore[misc]
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
            model.settle(predictor.training_rows_)
            if model.classes.tolist() != predictor.classes_.tolist():
                raise InvalidInput(
                    f"Every member must have the classes {predictor.classes_.tolist()}; got {model.classes.tolist()}."
                )
        self._separate = [] if predictor.averages_the_model else self._adapted(predictor)

    def with_rows_of(self, predictor: SubsetPredictor) -> Self:
        other = super().with_rows_of(predictor)
        other.trained_on_ = None  # type: ignore[misc]  # these are other rows
        return other

    def _adapted(self, predictor: SubsetPredictor) -> list[SubsetPredictor]:
        """A separate predictor for each member; members trained here get another seed and other rows."""
        rng = generator(self.random_state)
        y, adapted = predictor.training_labels_, []
        for model in self._models:
            own, rows = clone(predictor).set_params(estimator=None), np.arange(len(y))
            if self.estimators is None:
                own = reseeded(own, seed_from(rng))
                rows = _bootstrap(y, rng) if self.resample == "bootstrap" else rows
            own.set_params(estimator=model.estimator)
            adapted.append(own.fit_encoded(model, predictor.training_rows_.take(rows), y[rows]))
        return adapted

    def _train(self, predictor: SubsetPredictor, y: np.ndarray) -> tuple[list[Any], np.ndarray | None]:
        """The members, and `trained_on_`."""
        steps, classifier = split_pipeline(predictor.estimator_)
        if isinstance(classifier, BlackBox):
            raise InvalidInput(
                'epistemic="ensemble" trains further members, which a callable or a torch module cannot do. Use '
                'epistemic="distance" (any model), "dropout" (torch modules with dropout), or give trained members: '
                "AuxiliaryEnsemble(estimators=[...])."
            )
        check_limits(self, {"n_members": Whole(1), "n_jobs": Jobs()})
        if not can_train_members(predictor, y):
            raise InvalidInput(
                'epistemic="ensemble" trains further members: it needs a model that sklearn.base.clone can copy, and '
                "rows of every class that it takes (complete ones, unless it takes missing cells). Give more rows, or "
                'use epistemic="distance".'
            )
        rng = generator(self.random_state)
        rows = predictor.training_rows_for_models()
        table, labels = predictor.model_.table(predictor.training_rows_.take(rows)), y[rows]
        if has_resampling(predictor.estimator_):  # resampling happens between the steps: train them all
            steps, classifier = None, unfrozen(predictor.estimator_)
        inputs = table if steps is None else steps.transform(table)
        jobs = []
        trained_on = np.zeros((self.n_members, len(y)), dtype=bool)
        for k in range(self.n_members):
            chosen = _bootstrap(labels, rng) if self.resample == "bootstrap" else np.arange(len(labels))
            trained_on[k, rows[chosen]] = True
            member = reseeded(clone(classifier), seed_from(rng))
            jobs.append(delayed(fit_quietly)(member, _take(inputs, chosen), labels[chosen]))
        fits = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        trained = list(track(fits, "training members", self.n_members, self.progress))
        if steps is not None:
            trained = [Pipeline([*steps.steps, ("classifier", member)]) for member in trained]
        known = self.resample == "bootstrap" and reads_no_labels(steps)
        return trained, trained_on if known else None


def can_train_members(predictor: SubsetPredictor, y: np.ndarray) -> bool:
    """Whether models like the wrapped one can be trained, and on rows of every class, from what `fit` was given."""
    if not can_be_cloned(split_pipeline(predictor.estimator_)[1]):
        return False
    usable = y[predictor.training_rows_for_models()]
    return set(np.unique(usable).tolist()) == set(predictor.classes_.tolist())


def _bootstrap(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Row indices drawn with replacement within each class, so that no member misses a rare class."""
    by_class = [np.flatnonzero(y == label) for label in np.unique(y)]
    return np.sort(np.concatenate([rows[rng.integers(len(rows), size=len(rows))] for rows in by_class]))


def _take(table: Any, rows: np.ndarray) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
