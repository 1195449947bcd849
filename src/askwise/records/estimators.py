"""Evaluation on records in which tests were done for some cases and not for others, for reasons.

A policy that asks for a test which the records lack can be scored in four ways, each of which rests on an assumption:

- ``"blocked"``: as if the test could not have been done. Right where it could not, and will not be; biased otherwise.
- ``"weighted"``: only cases in which everything that the policy asked for was recorded, each weighted by the inverse
  probability of that. The probability of a record is a product over the questions, each factor estimated from what was
  revealed when the question was asked, what every record holds, and the label.
- ``"simulated"``: missing cells are drawn from completions of the record, several times, and the policy is run on each.
- ``"doubly_robust"``: the simulated value of each state, corrected along the recorded part of the way by weighted
  differences to what was seen next. Right if the weights are or the simulation is.

The estimators are those of von Kleist et al. (arXiv 2312.03619, 2312.01530) for values that do not change over time,
along a policy that draws nothing. The last three assume that nothing unrecorded decides what is recorded.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from askwise.errors import AskwiseWarning, InvalidInput
from askwise.records.completions import Describer, one_hot, ridge
from askwise.table.desk import REASONS
from askwise.table.rows import ByRow
from askwise.table.schema import Schema

MISSING = ("blocked", "weighted", "simulated", "doubly_robust")
"""The ways to score a question that the records do not answer."""

ASSUMPTIONS: dict[str, str] = {
    "blocked": "a test that is not recorded could not have been done, and will be as often missing when the selector "
    "is used",
    "weighted": "whether a test is recorded depends on the label, on what every record holds and on what had been "
    "asked before, and on nothing else; and each test is recorded for some cases of every kind",
    "simulated": "records of the same class with the same recorded values have alike missing values",
    "doubly_robust": "what the weights assume holds, or what the simulation assumes; one of them suffices",
}

N_DRAWS = 5
"""Completions of each record."""
FLOOR = 0.05
"""Probabilities of a record below it are raised to it: a case counts for at most 20 at each question."""
MOST_WEIGHT = 30.0
"""What one case counts for at most over all questions."""
PENALTIES = (0.003, 0.03, 0.3)
"""Strengths, per case, of the penalty of the model of what is recorded."""
N_FOLDS = 5
ENOUGH_CASES = 30.0
"""Cases, effectively, below which a weighted mean is not to be trusted."""
FEW_WITHOUT = 0.05
"""Share of the cases that may ask for a test hardly ever recorded for their like, before no estimate is trusted."""
MUCH_MISSING = 0.05
"""Share of missing features from which `evaluate` says what its numbers rest on."""


RESOURCE = "resource "
"""Before the number of a resource other than money, among the measures; a table has its name."""


@dataclass(frozen=True, eq=False)
class Paths(ByRow):
    """What a policy asked for of each case, and what was said after each answer.

    Attributes
    ----------
    order
        (n, T) features asked for, -1 = none.
    spent
        (n, T + 1) price so far.
    proba
        (n, T + 1, C) predictions.
    decision
        (n, T + 1) class decided for.
    end
        (n,) number of questions until the policy stopped.
    full
        (n,) class decided for with everything known; -1 where the record does not tell.
    further
        (n, T + 1, R - 1) what was spent so far of the resources other than money; None where there are none.
    """

    order: np.ndarray
    spent: np.ndarray
    proba: np.ndarray
    decision: np.ndarray
    end: np.ndarray
    full: np.ndarray
    further: np.ndarray | None = None

    @property
    def resources(self) -> dict[str, np.ndarray]:
        """(n, T + 1) what was spent so far of each resource other than money, by its place among the measures."""
        spent = np.empty((*self.spent.shape, 0)) if self.further is None else self.further
        return {f"{RESOURCE}{k}": spent[:, :, k] for k in range(spent.shape[2])}

    def __len__(self) -> int:
        return len(self.full)

    def followed(self, recorded: np.ndarray) -> np.ndarray:
        """(n,) questions that the records (n, M) answer, up to the first that they do not."""
        asked = self.order >= 0
        lacking = asked & ~np.take_along_axis(recorded, np.maximum(self.order, 0), axis=1)
        steps = np.argmax(np.column_stack([lacking, np.ones(len(self), dtype=bool)]), axis=1)
        return np.minimum(steps, self.end)


def outcomes(paths: Paths, labels: np.ndarray, costs: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """What is measured of each case at its end, (n,) each; `kept` is NaN where the record does not tell."""
    rows = np.arange(len(paths))
    decided, proba = paths.decision[rows, paths.end], paths.proba[rows, paths.end]
    found = {
        "accuracy": (decided == labels).astype(float),
        "log_loss": -np.log(np.clip(proba[rows, labels] / proba.sum(axis=1), np.finfo(float).eps, None)),
        "spent": paths.spent[rows, paths.end],
        "features": paths.end.astype(float),
        "kept": np.where(paths.full >= 0, decided == paths.full, np.nan),
        **{name: so_far[rows, paths.end] for name, so_far in paths.resources.items()},
    }
    if costs is not None:
        found["error_cost"] = costs[labels, decided].astype(float)
        found["total_cost"] = found["spent"] + found["error_cost"]
        untested = paths.decision[rows, np.minimum((paths.spent <= 0).sum(axis=1) - 1, paths.end)]
        found["net_benefit"] = costs[labels, untested] - found["total_cost"]
    return found


SHARES = ("accuracy", "kept")
"""Measures that are a share of the cases."""


@dataclass(frozen=True, eq=False)
class Questions:
    """Each question of each case up to the first that the record does not answer, with the chance of an answer.

    Attributes
    ----------
    chance
        (n, T + 1) probability that the question was answered, not truncated; the last column is that of everything
        that the policy did not ask for. 1 where nothing was asked.
    at_risk
        (n, T + 1) whether the question was reached.
    """

    chance: np.ndarray
    at_risk: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """(n, T + 2) inverse probabilities of the answers up to each state, the start first, truncated."""
        inverse = 1 / np.maximum(np.where(self.at_risk, self.chance, 1.0), FLOOR)
        along = np.column_stack([np.ones(len(inverse)), np.cumprod(inverse, axis=1)])
        return np.minimum(along, MOST_WEIGHT)

    @property
    def without_overlap(self) -> np.ndarray:
        """(n, T + 1) questions for whose like hardly any answer is recorded."""
        return self.at_risk & (self.chance < FLOOR)


class States:
    """The states along paths, described for regressions.

    Parameters
    ----------
    values
        (n, D) encoded rows whose cells the policy revealed.
    always
        (M,) features that every record holds: they are known of each state.
    """

    def __init__(
        self, paths: Paths, values: np.ndarray, labels: np.ndarray, always: np.ndarray, schema: Schema, like: Describer
    ) -> None:
        self.paths, self.always, self.schema, self.like = paths, always, schema, like
        self.cells = like.describe(values)
        squares = self.cells**2 * ~np.repeat(like.is_category, [len(block) for block in like.blocks])
        self.cells = np.concatenate([self.cells, squares], axis=1)
        owner = np.concatenate([np.full(len(block), schema.owner[j]) for j, block in enumerate(like.blocks)])
        self.owner = np.concatenate([owner, owner])
        self.labels = one_hot(labels, paths.proba.shape[2])
        self.label = labels

    def others(self, paths: Paths, values: np.ndarray) -> States:
        """The states along other paths of the same cases, described alike."""
        return States(paths, values, self.label, self.always, self.schema, self.like)

    def known(self, t: int) -> np.ndarray:
        """(n, M) features known after `t` questions."""
        mask = np.tile(self.always, (len(self.paths), 1))
        for step in range(t):
            asked = self.paths.order[:, step]
            rows = np.flatnonzero(asked >= 0)
            mask[rows, asked[rows]] = True
        return mask

    def described(self, t: int, rows: np.ndarray) -> np.ndarray:
        """(rows, P) what was known of the cases after `t` questions, and which features that is."""
        mask = self.known(t)[rows]
        varying = ~self.always
        return np.column_stack([self.cells[rows] * mask[:, self.owner], mask[:, varying], self.labels[rows]])

    def with_prediction(self, t: int, rows: np.ndarray) -> np.ndarray:
        """The same with what was predicted, and how that compares with the label."""
        proba, decision, label = self.paths.proba[rows, t], self.paths.decision[rows, t], self.label[rows]
        top = np.sort(proba, axis=1)[:, -2:]
        right = proba[np.arange(len(rows)), label]
        summary = [proba, right, top[:, 1] - top[:, 0], decision == label, right * (decision == label)]
        summary += [np.log(np.maximum(right, 1e-3)), self.paths.end[rows] <= t]
        return np.column_stack([self.described(t, rows), *summary])


def folds_of(n: int) -> np.ndarray:
    """(n,) fold of each case, fixed by the number of cases."""
    return np.random.default_rng(0).permutation(n) % N_FOLDS


def questions(states: States, recorded: np.ndarray) -> Questions:
    """The chance that each question was answered, cross-fitted over the cases; `recorded` is (n, M)."""
    paths = states.paths
    n, T = paths.order.shape
    followed, folds = paths.followed(recorded), folds_of(n)
    chance, at_risk = np.ones((n, T + 1)), np.zeros((n, T + 1), dtype=bool)
    steps = np.arange(T)
    at_risk[:, :T] = (paths.order >= 0) & (steps < paths.end[:, None]) & (steps <= followed[:, None])
    for j in np.flatnonzero(~recorded.all(axis=0)):
        case, step = np.nonzero(at_risk[:, :T] & (paths.order == j))
        if not len(case):
            continue
        given = np.concatenate([states.described(t, case[step == t]) for t in np.unique(step)])
        at = np.concatenate([np.flatnonzero(step == t) for t in np.unique(step)])
        chance[case[at], step[at]] = _chance(given, recorded[case[at], j], folds[case[at]])
    everything: np.ndarray = np.all(recorded, axis=1)
    reached = np.flatnonzero(followed == paths.end)
    # What is left to know where the policy stops: certain if the policy asked for all that is ever missing.
    known = states.known(T)[reached] | recorded.all(axis=0)
    reached = reached[~known.all(axis=1)]
    if len(reached):
        given = states.described(T, reached)
        at_risk[reached, T] = True
        chance[reached, T] = _chance(given, everything[reached], folds[reached])
    return Questions(chance, at_risk)


def _chance(given: np.ndarray, answered: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """(n,) probability of an answer for each case by a model fitted on the other folds.

    Of several strengths of the penalty, and the plain share of answers, that which predicts the left-out answers best.
    """
    if answered.all():
        return np.ones(len(answered))
    spread = given.std(axis=0)
    scaled = (given[:, spread > 0] - given[:, spread > 0].mean(axis=0)) / spread[spread > 0]
    found = np.empty((len(PENALTIES) + 1, len(answered)))
    for fold in np.unique(folds):
        inside, rest = folds == fold, folds != fold
        positive, n = int(answered[rest].sum()), int(rest.sum())
        found[:, inside] = (positive + 0.5) / (n + 1)
        if positive not in (0, n) and scaled.shape[1]:
            for k, penalty in enumerate(PENALTIES, start=1):
                model = LogisticRegression(C=1 / (penalty * n), max_iter=1000).fit(scaled[rest], answered[rest])
                found[k, inside] = model.predict_proba(scaled[inside])[:, 1]
    losses = log_loss_of(found, answered)
    return np.asarray(found[losses.argmin()])


def chance_of_everything(
    values: np.ndarray, recorded: np.ndarray, schema: Schema, labels: np.ndarray | None, n_classes: int
) -> np.ndarray:
    """(n,) probability that a record holds everything, given what every record holds and the label, truncated."""
    like = Describer(values, schema.is_category)
    always: np.ndarray = np.all(recorded, axis=0)
    cells = like.describe(values)
    owner = np.concatenate([np.full(len(block), schema.owner[j]) for j, block in enumerate(like.blocks)])
    cells = cells[:, always[owner]]
    given = np.column_stack([cells, cells**2] if labels is None else [cells, cells**2, one_hot(labels, n_classes)])
    whole: np.ndarray = np.all(recorded, axis=1)
    return np.maximum(_chance(given, whole, folds_of(len(values))), FLOOR)


def log_loss_of(chances: np.ndarray, answered: np.ndarray) -> np.ndarray:
    """(K,) mean log loss of chances (K, n)."""
    held = np.where(answered, chances, 1 - chances)
    return np.asarray(-np.log(np.maximum(held, np.finfo(float).tiny)).mean(axis=1))


@dataclass(frozen=True, eq=False)
class CaseValues:
    """What each case contributes to an estimate.

    Attributes
    ----------
    values
        ``{measure: (draws, n)}``; one draw where nothing is simulated.
    weights
        ``{measure: (n,)}``; 0 = not used.
    worth
        ``{measure: cases}``: how many equally weighted cases a share of all of them is worth at most, where the spread
        of the values says too little.
    """

    values: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]
    worth: Mapping[str, float] = field(default_factory=dict)

    def effective(self, members: np.ndarray | None = None, measure: str = "accuracy") -> float:
        """The number of equally weighted cases that would tell as much."""
        weights = self.weights[measure] if members is None else self.weights[measure][members]
        return float(weights.sum() ** 2 / (weights**2).sum()) if weights.any() else 0.0

    def estimate(
        self, measure: str, confidence: float, members: np.ndarray | None = None
    ) -> tuple[float, float, float]:
        """Mean of a measure over some of the cases (n,), with its interval; NaN where no case tells."""
        weights, values = self.weights[measure], self.values[measure]
        if members is not None:
            weights, values = weights[members], values[:, members]
        used = weights > 0
        weights, values = weights[used], values[:, used]
        if not len(weights):
            return np.nan, np.nan, np.nan
        total, draws = weights.sum(), len(values)
        means = values @ weights / total
        mean, n = float(means.mean()), len(weights)
        within = float((((values - means[:, None]) * weights) ** 2).sum(axis=1).mean() / total**2) * n / max(n - 1, 1)
        between = float(means.var(ddof=1)) * (1 + 1 / draws) if draws > 1 else 0.0
        freedom = max(n - 1, 1.0)
        if between > 0:
            freedom = min(freedom, (draws - 1) * (1 + within / between) ** 2)
        reach = float(student.ppf((1 + confidence) / 2, freedom))
        variance = within + between
        if measure not in SHARES:
            return mean, mean - reach * variance**0.5, mean + reach * variance**0.5
        worth = self.worth.get(measure, np.inf) * total / self.weights[measure].sum()
        return _share_interval(mean, variance, total**2 / float((weights**2).sum()), reach, worth)

    def balanced_accuracy(self, labels: np.ndarray, members: np.ndarray | None = None) -> float:
        """The mean over the classes that occur of the accuracy within each."""
        inside = np.ones(len(labels), dtype=bool) if members is None else members
        of_class = [self.estimate("accuracy", 0.5, inside & (labels == c))[0] for c in np.unique(labels[inside])]
        told = [share for share in of_class if np.isfinite(share)]
        return float(np.mean(told)) if told else float("nan")


def _share_interval(
    share: float, variance: float, cases: float, reach: float, worth: float = np.inf
) -> tuple[float, float, float]:
    """Wilson's interval for as many cases as give this variance, at most `worth`: within 0 and 1 and never empty."""
    share = min(max(share, 0.0), 1.0)
    own = share * (1 - share)
    n = min(own / variance if variance > 0 and own > 0 else cases, worth)
    center, half = share + reach**2 / (2 * n), reach * (own / n + reach**2 / (4 * n**2)) ** 0.5
    return share, max(0.0, (center - half) / (1 + reach**2 / n)), min(1.0, (center + half) / (1 + reach**2 / n))


def plain_values(paths: Paths, labels: np.ndarray, costs: np.ndarray | None) -> CaseValues:
    """Each case counts once, with what happened to it."""
    found = outcomes(paths, labels, costs)
    weights = {name: np.isfinite(one).astype(float) for name, one in found.items()}
    return CaseValues({name: np.nan_to_num(one)[None] for name, one in found.items()}, weights)


def simulated_values(draws: Sequence[Paths], labels: np.ndarray, costs: np.ndarray | None) -> CaseValues:
    """Each case counts once, with what happened to it in each draw."""
    found = [outcomes(paths, labels, costs) for paths in draws]
    values = {name: np.stack([one[name] for one in found]) for name in found[0]}
    return CaseValues(values, {name: np.ones(len(labels)) for name in values})


def weighted_values(
    paths: Paths, asked: Questions, recorded: np.ndarray, labels: np.ndarray, costs: np.ndarray | None
) -> CaseValues:
    """Cases whose questions were all answered, by the inverse probability of that."""
    found = outcomes(paths, labels, costs)
    along = asked.weights
    answered = paths.followed(recorded) == paths.end
    weight = np.where(answered, along[:, -2], 0.0)
    everything = np.where(answered & recorded.all(axis=1) & (paths.full >= 0), along[:, -1], 0.0)
    weights = {name: everything if name == "kept" else weight for name in found}
    return CaseValues({name: np.nan_to_num(one)[None] for name, one in found.items()}, weights)


def robust_values(
    states: States,
    asked: Questions,
    recorded: np.ndarray,
    simulated: Sequence[States],
    labels: np.ndarray,
    costs: np.ndarray | None,
) -> CaseValues:
    """The simulated value at the start, corrected by what was seen along the recorded part of the way.

    .. math:: m_0(h_0) + \\sum_t w_t \\, (m_t(h_t) - m_{t-1}(h_{t-1}))

    with the expected outcome :math:`m_t` of a state, by a regression on the states of the simulated runs of other
    cases, and the outcome itself in place of the last.
    """
    paths = states.paths
    n, T = paths.order.shape
    if n < 2:
        raise InvalidInput(f'missing="doubly_robust" learns from other cases: it needs at least two rows; got {n}.')
    real, folds, along = outcomes(paths, labels, costs), folds_of(n), asked.weights
    followed = paths.followed(recorded)
    answered = followed == paths.end
    whole = answered & recorded.all(axis=1) & (paths.full >= 0)
    names = list(real)
    drawn = [np.column_stack([outcomes(one.paths, labels, costs)[name] for name in names]) for one in simulated]
    # Of a price, what is still to be spent is predicted.
    so_far: dict[str, Any] = {
        "spent": lambda p, rows, t: p.spent[rows, t],
        "features": lambda p, rows, t: np.minimum(t, p.end[rows]),
    }
    for resource in paths.resources:
        so_far[resource] = lambda p, rows, t, resource=resource: p.resources[resource][rows, t]
    if costs is not None:
        so_far["total_cost"] = so_far["spent"]
        so_far["net_benefit"] = lambda p, rows, t: -p.spent[rows, t]

    def past(p: Paths, rows: np.ndarray, t: int) -> np.ndarray:
        zero = np.zeros(len(rows))
        return np.column_stack([so_far[name](p, rows, t) if name in so_far else zero for name in names])

    expected, kept, left = np.zeros((n, T + 1, len(names))), names.index("kept"), []
    for fold in range(N_FOLDS):
        rest, inside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if not len(inside):
            continue
        given, target = [], []
        for one, outcome in zip(simulated, drawn, strict=True):
            for t in range(one.paths.order.shape[1] + 1):
                rows = rest[one.paths.end[rest] >= t]
                if len(rows):
                    given.append(one.with_prediction(t, rows))
                    target.append(outcome[rows] - past(one.paths, rows, t))
        predict = ridge(np.concatenate(given), np.concatenate(target))
        for one, outcome in zip(simulated, drawn, strict=True):
            for t in np.unique(one.paths.end[inside]):
                rows = inside[one.paths.end[inside] == t]
                left.append(outcome[rows, kept] - predict(one.with_prediction(t, rows))[:, kept])
        for t in range(T + 1):
            rows = inside[followed[inside] >= t]
            if len(rows):
                expected[rows, t] = predict(states.with_prediction(t, rows)) + past(paths, rows, t)
    values, worth = {}, {}
    for k, name in enumerate(names):
        m = expected[:, :, k].copy()
        last = m[np.arange(n), followed]
        if name != "kept":
            last = np.where(answered, real[name], last)
            m[np.arange(n), followed] = last
        found = m[:, 0].copy()
        for t in range(1, T + 1):
            reached = followed >= np.minimum(t, paths.end)
            scale = n / max(float(along[reached, np.minimum(t, paths.end)[reached]].sum()), 1.0)
            found += np.where(followed >= t, scale * along[:, t] * (m[:, t] - m[:, t - 1]), 0.0)
        if name == "kept" and whole.any():
            # Few records are whole, and often none of them tells of a decision that is not kept. How much such cases
            # spread around what is expected of them, the simulation knows better than they do.
            weight = along[whole, -1] / along[whole, -1].sum()
            few, spread = float((weight**2).sum()), float(np.concatenate([one[:, k] for one in drawn]).var())
            variance = found.var() / n + (np.concatenate(left) ** 2).mean() * few
            worth[name] = spread / variance if spread > 0 else 1 / few
            scale = n / float(along[whole, -1].sum())
            found += np.where(whole, scale * along[:, -1] * (np.nan_to_num(real[name]) - last), 0.0)
        values[name] = found[None]
    return CaseValues(values, {name: np.ones(n) for name in names}, worth)


@dataclass(frozen=True, eq=False)
class Overlap:
    """Which questions the records answer, and for whom they hardly ever do.

    Attributes
    ----------
    asked, recorded
        (M,) cases, of those that could be followed so far, that ask for a feature, and how many of them have it.
    hardly
        For each feature the positions of the cases that ask for it and whose like hardly ever have it.
    followed
        (n,) whether everything that was asked for is recorded.
    effective
        Cases, effectively, behind the weighted estimate.
    """

    asked: np.ndarray
    recorded: np.ndarray
    hardly: list[np.ndarray]
    followed: np.ndarray
    effective: float

    @property
    def cases_without(self) -> np.ndarray:
        """Positions of the cases that ask for something hardly ever recorded for their like."""
        return np.unique(np.concatenate([*self.hardly, np.empty(0, dtype=int)]))

    def trusted(self, way: str) -> bool:
        """Whether the records can carry an estimate made this `way`; "blocked" they always can, for what it says."""
        if way == "blocked":
            return True
        if len(self.cases_without) > FEW_WITHOUT * len(self.followed):
            return False
        return way != "weighted" or self.effective >= ENOUGH_CASES


def overlap_of(paths: Paths, asked: Questions, recorded: np.ndarray, effective: float) -> Overlap:
    """The diagnostics of records (n, M) along paths."""
    T = paths.order.shape[1]
    reached, without = asked.at_risk[:, :T], asked.without_overlap[:, :T]
    counts, had, hardly = [], [], []
    for j in range(recorded.shape[1]):
        own = reached & (paths.order == j)
        counts.append(int(own.any(axis=1).sum()))
        had.append(int((own.any(axis=1) & recorded[:, j]).sum()))
        hardly.append(np.flatnonzero((without & own if recorded[:, j].any() else own).any(axis=1)))
    followed = paths.followed(recorded) == paths.end
    return Overlap(np.array(counts), np.array(had), hardly, followed, effective)


def check_missing(missing: Any, owner: str, allowed: Sequence[str] = (*MISSING, "all")) -> str:
    """The way to score questions that the records do not answer."""
    if missing not in allowed:
        names = ", ".join(f'"{name}"' for name in allowed)
        raise InvalidInput(f"{owner}: missing must be one of {names}; got {missing!r}.")
    return str(missing)


def check_reasons(reasons: Mapping[str, str] | None, schema: Schema) -> np.ndarray:
    """(M,) features whose missing cells could not have been had, by the `reasons` that a user gives."""
    never = np.zeros(len(schema.features), dtype=bool)
    if reasons is None:
        return never
    if not isinstance(reasons, Mapping):
        raise InvalidInput(f"reasons must be a dict {{feature: reason}}; got {reasons!r}.")
    for name, reason in reasons.items():
        i = schema.position(name, "reasons")
        if reason not in REASONS:
            names = " or ".join(f'"{one}"' for one in REASONS)
            raise InvalidInput(f"reasons: the reason of {name!r} must be {names}; got {reason!r}.")
        never[i] = reason == "not available"
    return never


def warn_of_missing(recorded: np.ndarray) -> None:
    """A warning if much of the records (n, M) is missing, and nobody said what to make of it."""
    share = float(1 - recorded.mean())
    if share >= MUCH_MISSING:
        warnings.warn(
            f"{share:.0%} of the features are missing in these records, and are scored as tests that could not have "
            'been done. If they could have, these numbers are biased: missing="all" shows what other assumptions give; '
            'missing="blocked" says that this one is meant.',
            AskwiseWarning,
            stacklevel=3,
        )
