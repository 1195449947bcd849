r"""What changes the choice of features: the weight of epistemic uncertainty, unavailable features, the L1 weight.

Deviations from the paper's protocol, numbered:

1. :math:`\lambda` is changed in the fitted policy: the value network has a head for each of its two terms and is not
   trained again. A Q-network has only their sum and is left out.
2. The gain is made of reductions, so that a positive :math:`\lambda` lowers epistemic uncertainty, as the paper's table
   says and its Eq. 9, read as it is printed, does not.
3. The paper argues about features that are unavailable at test time (Section 2.1) and measures nothing; here a share of
   the features of each test row, drawn with the seed, is unavailable; the same ones for every method.
4. The paper lists the L1 weights it tried (Appendix G) without a result; here they are compared under the budgets of
   the main tables.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import pandas as pd

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput
from askwise.policy import Greedy
from askwise.policy.orders import Random
from askwise.selector import DynamicFeatureSelector
from askwise.value import ValueEstimator
from askwise_bench.grid.tasks import Task
from askwise_bench.grid.trials import Measurement
from askwise_bench.studies.accuracy import accuracies
from askwise_bench.studies.uncertainty import budgets_at, defined, outcomes, with_only

RISK_WEIGHTS = (-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0)
LAMBDA_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
UNAVAILABLE_SHARES = (0.0, 0.1, 0.3, 0.5)
L1_WEIGHTS = (0.0, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 1.0, 2.0)
"""Those of Appendix G, and two smaller ones: the penalty is a sum over thousands of weights."""

UNAVAILABLE = 1002
"""Keeps the draws of unavailable features apart from those of a random order of purchases, which has the same seed."""


def risk_weights(task: Task, method: DynamicFeatureSelector) -> Iterator[Measurement]:
    r"""Accuracy and epistemic uncertainty by the weight :math:`\lambda` and budget, for greedy policies.

    Table "Effect of epistemic uncertainty weight" (Section 4.2): ``accuracy``, ``epistemic`` (Eq. 13) and ``variance``
    by ``risk_weight`` under budgets of 20 % to 80 % of the price of everything.
    """
    _check_greedy(method, "risk_weights")
    budgets = budgets_at(method, LAMBDA_SHARES)
    for weight in RISK_WEIGHTS:
        weighted = copy.copy(method).set_params(risk_weight=weight)  # the fitted method keeps its own
        for outcome in outcomes(task, weighted, budgets):
            yield Measurement("accuracy", float(outcome.correct.mean()), outcome.budget, risk_weight=weight)
            for name in ("epistemic", "variance"):
                mean = float(getattr(outcome.uncertainty, name).mean())
                yield from defined(name, mean, outcome.budget, risk_weight=weight)


def unavailable(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Accuracy by budget when some features of each row are unavailable (argued in Section 2.1, not measured there).

    By ``unavailable_share``: ``accuracy``, and ``random_accuracy`` of the same predictor when it buys in random order,
    to see what is left of the policy's advantage.
    """
    for share in UNAVAILABLE_SHARES:
        X = without(task, method, share)
        yield from accuracies(task, method, X, unavailable_share=share)
        yield from accuracies(task, method, X, "random_accuracy", Random(task.seed), unavailable_share=share)


def l1_weights(task: Task, method: DynamicFeatureSelector) -> Iterator[Measurement]:
    """``accuracy`` by ``l1``, the L1 weight of a value network trained with it (Appendix G), at the usual budgets."""
    _check_greedy(method, "l1_weights")
    for weight in L1_WEIGHTS:
        regularized = method.with_policy(
            Greedy(ValueEstimator(l1=weight, random_state=task.seed), price_rule="per price")
        )
        yield from accuracies(task, regularized, task.X_test, l1=weight)


def without(task: Task, method: FeatureAcquirer, share: float) -> pd.DataFrame:
    """The test rows without a random `share` of the features of each; a higher share removes the same and more."""
    n_features = len(method.features_)
    draws = np.random.default_rng([task.seed, UNAVAILABLE]).random((len(task.X_test), n_features))
    gone = draws.argsort(axis=1).argsort(axis=1) < round(share * n_features)
    return with_only(method, task.X_test, ~gone)


def _check_greedy(method: FeatureAcquirer, study: str) -> None:
    if not isinstance(method, DynamicFeatureSelector) or not isinstance(method.policy_, Greedy):
        raise InvalidInput(
            f"{study} needs a selector with a greedy policy; got {type(method).__name__} with "
            f"{type(method.policy_).__name__}."
        )
