"""The base class of epistemic estimators: members around a fitted predictor (Section 3.2.2)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from askwise.model.stacked import stack
from askwise.predict.base import SubsetPredictor
from askwise.predict.belief import Belief
from askwise.table.rows import EncodedRows


class EpistemicEstimator(BaseEstimator):
    """Uncertainty around a fitted `SubsetPredictor`; subclasses implement `_fit`.

    One with members sets `_models`, to be stacked beside the wrapped model where the predictor averages it over
    completions, or else `_separate`, a predictor for each member.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise.epistemic import BeliefModel, EpistemicEstimator
    >>> from askwise.predict import ImputedPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = ImputedPredictor(model).fit(X, y)
    >>> class TwoStrategies(EpistemicEstimator):
    ...     def _fit(self, predictor):
    ...         rows, y = predictor.training_rows_, predictor.training_labels_
    ...         self._separate = [
    ...             ImputedPredictor(predictor.estimator_, strategy).fit_encoded(predictor.model_, rows, y)
    ...             for strategy in ("zero", "marginal")
    ...         ]
    >>> beliefs = BeliefModel(predictor, TwoStrategies().fit(predictor))
    >>> beliefs.believe(predictor.schema_.encode(X[:5])).members.shape
    (2, 5, 3)
    """

    _models: Sequence[Any] = ()
    _separate: Sequence[SubsetPredictor] = ()

    @property
    def around_the_mean(self) -> bool:
        """Whether e is the divergence of the members from their mean (Eq. 17), not from the prediction (Eq. 13)."""
        return False

    def fit(self, predictor: SubsetPredictor) -> Self:
        """Prepare the members around `predictor`, from the rows it was fitted on."""
        self._fit(predictor)
        return self

    def joined(self, predictor: SubsetPredictor) -> SubsetPredictor:
        """`predictor` with the members stacked beside its model, if all average over the same completions."""
        if not self._models or not predictor.averages_the_model:
            return predictor
        return predictor.with_model(stack([predictor.model_, *self._models]))

    def extended(self, belief: Belief, rows: EncodedRows, leave_out: np.ndarray | None) -> Belief:
        """`belief`, which has no members from a call together with the model, with what this estimator adds."""
        if not self._separate:
            return belief
        return belief.with_members([member.proba(rows, leave_out) for member in self._separate])

    def with_rows_of(self, predictor: SubsetPredictor) -> Self:
        """The same members around `predictor`, whose training rows take the place of those they were fitted with."""
        other = copy.copy(self)
        rows, y = predictor.training_rows_, predictor.training_labels_
        other._separate = [member.with_rows(rows, y) for member in self._separate]
        return other

    def _fit(self, predictor: SubsetPredictor) -> None:
        raise NotImplementedError
