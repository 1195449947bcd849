"""RulePredictor: trees, forests, rule lists and fuzzy models predict from subsets by their structure (Appendix C)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.utils.validation import check_is_fitted

from askwise.errors import InvalidInput
from askwise.model.parts import split_pipeline
from askwise.parameters import Choice, Number, Whole, check_limits, within
from askwise.predict.base import SubsetPredictor
from askwise.predict.pipelines import ModelInputs, output_names
from askwise.predict.rules.aggregation import AGGREGATIONS, best_rules
from askwise.predict.rules.conditions import RuleSet
from askwise.predict.rules.crisp import list_rules, named_categories, tree_rules
from askwise.predict.rules.explanation import Explanation, FiringRule, PossibleRule, summary
from askwise.predict.rules.fuzzy import foreign_rules, fuzzy_tree_rules
from askwise.predict.rules.reduction import Reduced, ReducedRules
from askwise.table.rows import EncodedRows
from askwise.table.subsets import check_mask, meets
from askwise.trees.fuzzy_tree import FuzzyTreeClassifier
from askwise.trees.rule_list import RuleListClassifier


@dataclass(eq=False, repr=False)
class RulePredictor(SubsetPredictor):
    r"""Rules without their conditions on unobserved columns, with re-estimated confidences.

    .. math:: \text{Confidence}(r^S \Rightarrow c) =
        \frac{\sum_i \mu_{r^S}(x^{(i)}_S) \, I(y^{(i)} = c)}{\sum_i \mu_{r^S}(x^{(i)}_S)}

    over the training rows, where :math:`\mu` is 0 or 1 for crisp rules; a missing cell satisfies
    no condition. A rule without remaining conditions is pruned; if all are pruned, the prediction is the class prior.
    Equals the wrapped model on complete rows. Nothing is trained.

    Parameters
    ----------
    estimator
        DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier, the classifiers of
        `askwise.trees`, a fuzzy model of ex-fuzzy, or a Pipeline that ends in one of them.
    aggregation
        ``"support"``: the mean of the firing rules weighted by support; ``"best"``: the rule of highest confidence.
    threshold
        Rules of at most this firing degree are ignored by `candidates`; 0 is exact.
    cache_bytes
        Memory for cached confidences; the least recently used are dropped.

    Attributes
    ----------
    rule_sets_ : list of `RuleSet`, one per tree
    cache_info_ : dict with the current entries and bytes, and the maximum bytes

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from askwise.predict import RulePredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> predictor = RulePredictor(tree).fit(X, y)
    >>> predictor.predict_proba(X[[120]], np.zeros((1, 4), dtype=bool)).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    >>> predictor.candidates(X[[120]]).tolist()
    [[False, False, False, False]]
    """

    estimator: Any
    _: KW_ONLY
    aggregation: str = within(Choice(tuple(AGGREGATIONS)), "support")
    threshold: float = within(Number(0, 1, below=True), 0.0)
    cache_bytes: int = within(Whole(0), 64_000_000)

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        check_limits(self)
        steps, classifier = split_pipeline(self.estimator_)
        self.rule_sets_ = self._rules_of(classifier, steps)
        a_list = steps is None and isinstance(classifier, RuleListClassifier)
        self._inputs = ModelInputs(
            self.model_,
            rows,
            encoded=a_list,
            rounded=_is_tree(classifier) or _is_forest(classifier),
            named=named_categories(classifier, self.schema_) if a_list else None,
        )
        inputs, _ = self._inputs(rows)
        n_classes, share = len(self.classes_), self.cache_bytes // len(self.rule_sets_)
        self._reduced = [ReducedRules(rules, inputs, y, n_classes, share) for rules in self.rule_sets_]

    @property
    def _combine(self) -> list[Callable[..., np.ndarray]]:
        return [partial(AGGREGATIONS[self.aggregation], reduced) for reduced in self._reduced]

    @property
    def cache_info_(self) -> dict[str, int]:
        check_is_fitted(self, "rule_sets_")
        caches = [reduced.cache for reduced in self._reduced]
        return {
            "entries": sum(len(cache) for cache in caches),
            "bytes": sum(cache.nbytes for cache in caches),
            "max_bytes": self.cache_bytes,
        }

    def predict_grid(self, X: Any, masks: Any) -> np.ndarray:
        """p(y | x_S) of every row under every one of the masks (m, D), (m, n, C): each row is looked up once."""
        rows = self._encode(X)
        masks = check_mask(masks, (len(np.atleast_2d(masks)), rows.values.shape[1]), "masks")
        if not rows.observed.all() or not all(rules.exact for rules in self.rule_sets_):
            return np.stack([self.proba(rows.masked(mask)) for mask in masks])
        inputs, _ = self._inputs(rows)
        seen = ~(~masks @ self._inputs.depends)
        total = np.zeros((len(masks), len(rows), len(self.classes_)))
        for reduced, combine in zip(self._reduced, self._combine, strict=True):
            for start in range(0, len(inputs), reduced.rows_at_once):
                part = slice(start, start + reduced.rows_at_once)
                for m, proba in enumerate(reduced.answer_grid(inputs[part], seen, combine)):
                    total[m, part] += proba
        return total / len(self._reduced)

    def open_columns(self, rows: EncodedRows) -> np.ndarray:
        """(n, D) columns of rules that are not contradicted yet: no other column can change the prediction."""
        wanted = self._open(*self._inputs(rows), self.threshold)
        return self._inputs.columns_behind(wanted) & ~rows.observed

    def explain(self, X: Any, mask: Any = None, most: int = 5) -> list[Explanation]:
        """`explain_encoded` of a table."""
        return self.explain_encoded(self._encode(X, mask), most)

    def explain_encoded(self, rows: EncodedRows, most: int = 5) -> list[Explanation]:
        """For each row, the rules that fire in reduced form, and those still possible; at most `most` of each."""
        if not isinstance(most, int | np.integer) or most < 0:
            raise InvalidInput(f"most must be a whole number of at least 0; got {most!r}.")
        inputs, seen = self._inputs(rows)
        return [self._explain(inputs[[r]], seen[[r]], most) for r in range(len(rows))]

    def _predict(self, rows: EncodedRows) -> np.ndarray:
        return self._answer(rows, None)

    def _predict_new(self, rows: EncodedRows, leave_out: np.ndarray) -> np.ndarray:
        return self._answer(rows, self.training_labels_[leave_out])

    def _answer(self, rows: EncodedRows, own: np.ndarray | None) -> np.ndarray:
        inputs, seen = self._inputs(rows)
        proba = np.zeros((len(rows), len(self.classes_)))
        for reduced, combine in zip(self._reduced, self._combine, strict=True):
            proba += reduced.answer(inputs, seen, combine, own)
        proba /= len(self._reduced)
        if not all(rules.exact for rules in self.rule_sets_):
            settled = ~self._open(inputs, seen, 0.0).any(axis=1)
            proba[settled] = self.model_(self._inputs.completed(rows).take(settled))
        return proba

    def _open(self, inputs: np.ndarray, seen: np.ndarray, threshold: float) -> np.ndarray:
        """(n, P) unobserved inputs in rules whose firing degree exceeds `threshold`."""
        wanted = np.zeros(seen.shape, dtype=bool)
        for reduced in self._reduced:
            alive = reduced.degrees(inputs, seen) > threshold
            wanted[:, reduced.columns] |= meets(alive, reduced.uses.T)
        return wanted & ~seen

    def _explain(self, inputs: np.ndarray, seen: np.ndarray, most: int) -> Explanation:
        firing: list[FiringRule] = []
        possible: list[PossibleRule] = []
        for tree, reduced in enumerate(self._reduced):
            degrees = reduced.degrees(inputs, seen)[0]
            now, in_full = reduced.reduce(np.vstack([seen, np.ones_like(seen)]))
            alive = np.flatnonzero(degrees > 0)
            # A reduced rule that no row of `fit` satisfies has no confidence and does not contribute.
            speaking = alive[(now.kept & (now.counts.sum(axis=1) > 0) | now.whole)[alive]]
            weights = self._weights(reduced, degrees, now, speaking) / len(self._reduced)
            for number, weight in zip(speaking, weights, strict=True):
                words, _ = self._in_words(reduced, number, seen[0])
                said = self._said(reduced, number, now, degrees[number], tree)
                firing.append(FiringRule(words, **said, weight=float(weight)))
            for number in alive[~now.whole[alive]]:
                words, hidden = self._in_words(reduced, number, seen[0])
                said = self._said(reduced, number, in_full, degrees[number], tree)
                possible.append(PossibleRule(words, **said, open=hidden))
        return summary(firing, possible, most)

    def _weights(self, reduced: ReducedRules, degrees: np.ndarray, now: Reduced, speaking: np.ndarray) -> np.ndarray:
        """The weight of each rule in the prediction of its tree."""
        support = now.counts[speaking].sum(axis=1)
        if (now.whole | (degrees == 0)).all():  # the model's own prediction
            weights = degrees[speaking]
        elif self.aggregation == "best":
            best, said = best_rules(reduced, degrees[None], now, None)
            weights = (speaking == best[0]) * said.sum()
        else:
            weights = degrees[speaking] * np.where(now.whole[speaking], np.maximum(support, 1.0), support)
        total = weights.sum()
        return weights / total if total > 0 else weights

    def _said(self, reduced: ReducedRules, number: int, under: Reduced, degree: float, tree: int) -> dict[str, Any]:
        """The confidences of a rule `under` a mask, and the rows behind them."""
        counts, whole = under.counts[number], bool(under.whole[number])
        return {
            "proba": reduced.values[number] if whole else counts / counts.sum(),
            "support": float(counts.sum()),
            "degree": float(degree),
            "from_model": whole and reduced.rules.rules[number].value is not None,
            "trees": frozenset([tree]),
        }

    def _in_words(self, reduced: ReducedRules, number: int, seen: np.ndarray) -> tuple[tuple[str, ...], ...]:
        """Conditions of a rule that are observed, and those that are not, in the order of the columns."""
        conditions = sorted(reduced.rules.rules[number].conditions.items(), key=lambda item: item[0])
        known = tuple(self._inputs.in_words(k, condition) for k, condition in conditions if seen[k])
        return known, tuple(self._inputs.in_words(k, condition) for k, condition in conditions if not seen[k])

    def _rules_of(self, classifier: Any, steps: Any) -> list[RuleSet]:
        """One rule set per tree; `steps` of a Pipeline come before the classifier, or None."""
        if isinstance(classifier, RuleListClassifier):
            return [list_rules(classifier, self.schema_ if steps is None else None)]
        if isinstance(classifier, FuzzyTreeClassifier):
            return [fuzzy_tree_rules(classifier)]
        if _is_forest(classifier):
            return [tree_rules(tree.tree_) for tree in classifier.estimators_]
        if _is_tree(classifier):
            return [tree_rules(classifier.tree_)]
        names = [column.name for column in self.schema_.columns] if steps is None else output_names(steps)
        foreign = foreign_rules(classifier, names, numbered=steps is not None or not self.schema_.framed)
        if foreign is not None:
            return [foreign]
        raise InvalidInput(
            'adaptation="rules" needs a decision tree, a random forest or extra trees, a rule list or a fuzzy model '
            f"(or a Pipeline that ends in one); got {type(classifier).__name__}. Any model works with "
            'adaptation="conditional".'
        )


def _is_tree(classifier: Any) -> bool:
    """A tree with scikit-learn's arrays."""
    return hasattr(classifier, "tree_") and hasattr(classifier.tree_, "children_left")


def _is_forest(classifier: Any) -> bool:
    return isinstance(classifier, RandomForestClassifier | ExtraTreesClassifier)
