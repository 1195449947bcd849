"""Rules of the house: which features may be asked when, whatever a policy prefers.

A rule is data: what it says, and the features it names. `HouseRules` is what rules mean for the features of a table,
as masks; the acquisition applies them where it determines what can be acquired, so that everything obeys that
acquires by it.
"""

from __future__ import annotations

import hashlib
import operator
import os
import re
import tomllib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from askwise.errors import InvalidInput
from askwise.parameters import Number, Whole
from askwise.table.columns import Column
from askwise.table.schema import Schema

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
"""The longer ones first, as they are tried."""
CONDITION = re.compile(rf"\s*({'|'.join(COMPARISONS)})\s*(.+?)\s*")
DRAWS = 2**32


@dataclass(frozen=True)
class Rule:
    """One rule of the house; made by the functions of `askwise.constraints`, whose call is its text.

    Examples
    --------
    >>> from askwise.constraints import requires
    >>> rule = requires("mri", "x-ray")
    >>> rule, rule.features
    (requires('mri', 'x-ray'), ('mri', 'x-ray'))
    """

    kind: str
    features: tuple[Any, ...]
    n: int = 0
    condition: Any = None
    share: float = 1.0

    def __post_init__(self) -> None:
        for feature in self.features:
            if not isinstance(feature, Hashable):
                raise InvalidInput(f"{self.kind}: a feature must be the name of one; got {feature!r}.")

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.features))
        if self.kind == "at_most":
            return f"at_most({self.n}, of=[{names}])"
        if self.kind == "only_if":
            return f"only_if({names}, {self.condition!r})"
        if self.kind == "pilot":
            return f"pilot({names}, after={self.n}, share={self.share:g})"
        return f"{self.kind}({names})"


def requires(feature: Any, needed: Any) -> Rule:
    """`feature` is only asked once `needed` is known.

    >>> requires("mri", "x-ray")
    requires('mri', 'x-ray')
    """
    return _of_two("requires", feature, needed)


def excludes(feature: Any, other: Any) -> Rule:
    """Once one of the two is known, the other is not asked.

    >>> excludes("ct", "mri")
    excludes('ct', 'mri')
    """
    return _of_two("excludes", feature, other)


def first(feature: Any) -> Rule:
    """`feature` is asked before all others, unless it is unavailable or dearer than the budget.

    Several such features come before the others, in the order that the policy chooses.

    >>> first("age")
    first('age')
    """
    return Rule("first", (feature,))


def mandatory(feature: Any) -> Rule:
    """`feature` is asked in every case in which it is available and affordable, before others and before any stop.

    So is what it needs by `requires` and `only_if`. Only features that are `first` come earlier.

    >>> mandatory("blood pressure")
    mandatory('blood pressure')
    """
    return Rule("mandatory", (feature,))


def at_most(n: int, of: Sequence[Any]) -> Rule:
    """No more than `n` of these features are known in the end; those known at the start count.

    >>> at_most(2, of=["ct", "mri", "pet"])
    at_most(2, of=['ct', 'mri', 'pet'])
    """
    if isinstance(of, str | Mapping) or not isinstance(of, Iterable):
        raise InvalidInput(f"at_most: of must be a list of features; got {of!r}.")
    found = Rule("at_most", tuple(of), n=n)
    if not Whole(1).allows(n):
        raise InvalidInput(f"at_most: n must be {Whole(1)}; got {n!r}. To never ask a feature, use `available`.")
    if len(set(map(str, found.features))) < max(len(found.features), 2):
        raise InvalidInput(f"at_most: of must name two or more different features; got {list(found.features)!r}.")
    return found


def only_if(feature: Any, other: Any, condition: Any) -> Rule:
    """`feature` is only asked once `other` is known and its value satisfies the condition.

    Parameters
    ----------
    condition
        A comparison such as ``">= 3"`` or ``"!= none"``, a value, or a list of values. Of a group of columns: a dict
        ``{column: condition}``, all of which must hold; a column without a value does not.

    Examples
    --------
    >>> only_if("biopsy", "psa", ">= 4")
    only_if('biopsy', 'psa', '>= 4')
    """
    if isinstance(condition, list | tuple | set):
        condition = tuple(condition)
    if isinstance(condition, Mapping):
        condition = {name: tuple(each) if isinstance(each, list | set) else each for name, each in condition.items()}
    each = condition.values() if isinstance(condition, dict) else [condition]
    if not each or any(one is None or one == () for one in each):
        raise InvalidInput(f"only_if: the condition on {other!r} must be a comparison or values; got {condition!r}.")
    rule = _of_two("only_if", feature, other)
    return Rule("only_if", rule.features, condition=condition)


def pilot(name: str, after: int = 0, share: float = 1.0) -> Rule:
    """A new question that the model does not know yet: sessions scatter it in, and keep its answers.

    It is suggested when `after` features are known, in a `share` of the cases. Which ones follows from the values
    that are known then, so that a case that is replayed, or sent without a session, gets the same questions. The
    answer costs nothing and changes nothing: `Session.report` has it under ``"pilot"``.

    >>> pilot("sleep", after=2, share=0.5)
    pilot('sleep', after=2, share=0.5)
    """
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"pilot: name must be text; got {name!r}.")
    if not Whole(0).allows(after):
        raise InvalidInput(f"pilot: after must be {Whole(0)}; got {after!r}.")
    if not Number(0, 1, above=True).allows(share):
        raise InvalidInput(f"pilot: share must be {Number(0, 1, above=True)}; got {share!r}.")
    return Rule("pilot", (name,), n=after, share=float(share))


def read_rules(path: str | Path) -> list[Rule]:
    """The rules of a file in TOML, in which each kind has a list.

    Examples
    --------
    >>> import tempfile
    >>> text = '''
    ... first = ["age"]
    ... requires = [["mri", "x-ray"]]
    ... [[only_if]]
    ... feature = "biopsy"
    ... other = "psa"
    ... condition = ">= 4"
    ... '''
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "rules.toml"
    >>> _ = path.write_text(text)
    >>> read_rules(path)
    [first('age'), requires('mri', 'x-ray'), only_if('biopsy', 'psa', '>= 4')]
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"read_rules: path must be that of a TOML file; got {path!r}.")
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))  # some editors write a byte-order mark
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}") from None
    unknown = [kind for kind in given if kind not in _READERS]
    if unknown:
        raise InvalidInput(f"{path}: there is no rule {unknown[0]!r}. The rules are: {', '.join(_READERS)}.")
    found = []
    for kind, entries in given.items():
        make, keys = _READERS[kind]
        if not isinstance(entries, list):
            raise InvalidInput(f"{path}: {kind} must be a list; got {entries!r}.")
        for entry in entries:
            try:
                found.append(make(**_arguments(entry, keys)))
            except (TypeError, InvalidInput) as error:
                said = str(error) if isinstance(error, InvalidInput) else f"it needs {', '.join(keys)}"
                raise InvalidInput(f"{path}: {kind} cannot be {entry!r}: {said}") from None
    return found


_READERS: dict[str, tuple[Callable[..., Rule], tuple[str, ...]]] = {
    "first": (first, ("feature",)),
    "mandatory": (mandatory, ("feature",)),
    "requires": (requires, ("feature", "needed")),
    "excludes": (excludes, ("feature", "other")),
    "at_most": (at_most, ("n", "of")),
    "only_if": (only_if, ("feature", "other", "condition")),
    "pilot": (pilot, ("name", "after", "share")),
}
"""The kinds of rules in a file, and what an entry of each has, by name or in this order."""


def _arguments(entry: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(entry, dict):
        return entry
    values = entry if isinstance(entry, list) else [entry]
    if len(values) > len(keys):
        raise InvalidInput(f"it has {len(keys)} parts: {', '.join(keys)}.")
    return dict(zip(keys, values, strict=False))


def _of_two(kind: str, feature: Any, other: Any) -> Rule:
    found = Rule(kind, (feature, other))
    if feature == other:
        raise InvalidInput(f"{kind}: the two features must differ; got {feature!r} twice.")
    return found


@dataclass(frozen=True)
class Test:
    """A comparison of an encoded cell with numbers: ``cell op value`` for any of the values."""

    column: int
    comparison: str
    values: tuple[float, ...]

    def holds(self, cells: np.ndarray) -> np.ndarray:
        """(n,) bool; False where the cell is not known."""
        compared = [COMPARISONS[self.comparison](cells, value) for value in self.values]
        return np.logical_or.reduce(compared) & ~np.isnan(cells)


class HouseRules:
    """Rules, checked and as masks over the features of a table.

    Parameters
    ----------
    rules
        The rules.
    schema
        The features that they name.

    Attributes
    ----------
    needs : (M, M) bool, [i, j]: i is asked only once j is known
    excluding : (M, M) bool, symmetric
    first, must : (M,) bool: what comes before everything else, and what is always asked
    limits : pairs of the most that may be known and the features (M,) bool that this is about
    tests : triples of a feature, its rule, and the tests of cells that must all hold
    pilots : the rules of questions that the model does not know
    """

    def __init__(self, rules: Iterable[Rule], schema: Schema) -> None:
        self.rules = _checked(rules)
        n = len(schema.features)
        self.needs, self.excluding = np.zeros((2, n, n), dtype=bool)
        self.first, self.must = np.zeros((2, n), dtype=bool)
        self.limits: list[tuple[int, np.ndarray]] = []
        self.tests: list[tuple[int, Rule, list[Test]]] = []
        self.pilots: list[Rule] = []
        self._places: list[tuple[Rule, list[int]]] = []
        for rule in self.rules:
            if rule.kind == "pilot":
                self._add_pilot(rule, schema)
                continue
            at = [_position(name, schema, rule) for name in rule.features]
            if len(set(at)) < len(at):
                raise InvalidInput(f"constraints: {rule!r} names one feature twice, by name and by position.")
            self._places.append((rule, at))
            if rule.kind == "requires":
                self.needs[at[0], at[1]] = True
            elif rule.kind == "only_if":
                self.needs[at[0], at[1]] = True
                self.tests.append((at[0], rule, _tests(rule, schema, at[1])))
            elif rule.kind == "excludes":
                self.excluding[at, at[::-1]] = True
            elif rule.kind == "at_most":
                members = np.zeros(n, dtype=bool)
                members[at] = True
                self.limits.append((rule.n, members))
            else:
                (self.first if rule.kind == "first" else self.must)[at] = True
        self._all_needed = _closure(self.needs)
        self.must = self.must | self._all_needed[self.must].any(axis=0)
        self._refuse_contradictions(schema)

    @property
    def leading(self) -> np.ndarray:
        """(M,) features that are asked whatever can still be learned from them."""
        return self.first | self.must

    def allowed(
        self, open_: np.ndarray, mask: np.ndarray, values: np.ndarray, pending: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, M) which of the features `open_`, that could be acquired, may come next.

        `mask` (n, M) are the known features, `values` (n, D) the encoded cells. Those `pending` (n, M) are not known
        yet; they exclude others, and count among so many, as if they were.
        """
        found = self._possible(open_, mask, values, pending)
        for stage in (self.first, self.must):
            here = found & stage
            found = np.where(here.any(axis=1, keepdims=True), here, found)
        return found

    def obliged(self, open_: np.ndarray, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n,) whether something mandatory is still to come, so that no rule stops the case."""
        if not self.must.any():
            return np.zeros(len(mask), dtype=bool)
        return np.asarray((self._possible(open_, mask, values) & self.must).any(axis=1))

    def hopeless(self, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(n, M) unknown features that are never asked any more, whatever else is learned."""
        ruled_out = mask @ self.excluding
        for n, members in self.limits:
            ruled_out |= members & (mask[:, members].sum(axis=1, keepdims=True) >= n)
        for i, _, tests in self.tests:
            for test in tests:
                cells = values[:, test.column]
                ruled_out[:, i] |= ~np.isnan(cells) & ~test.holds(cells)
        ruled_out &= ~mask
        return np.asarray((ruled_out | (ruled_out @ self._all_needed.T)) & ~mask)

    def together(self, features: np.ndarray, mask: np.ndarray | None = None) -> bool:
        """Whether a case may come to know the features (M,) bool, and nothing else, beyond those of `mask` (M,)."""
        known = np.zeros_like(features) if mask is None else mask
        both = features | known
        new = features & ~known
        lacking = self.needs[new] & ~both
        clash = self.excluding[new] & both
        return not (lacking.any() or clash.any() or any(both[members].sum() > n for n, members in self.limits))

    def too_many(self, mask: np.ndarray, sets: np.ndarray) -> np.ndarray:
        """(n, Q) whether the features of `mask` (n, M) and of each of `sets` (Q, M) are more than a limit allows."""
        found = np.zeros((len(mask), len(sets)), dtype=bool)
        for n, members in self.limits:
            had, wanted = mask[:, members].astype(float), sets[:, members].astype(float)
            found |= had.sum(axis=1, keepdims=True) + (1 - had) @ wanted.T > n
        return found

    def draws(self, pilot: Rule, values: np.ndarray) -> bool:
        """Whether a pilot question is for a case with these known cells (D,)."""
        seen = repr((pilot.features[0], [None if np.isnan(cell) else float(cell) for cell in values]))
        number = int.from_bytes(hashlib.sha256(seen.encode()).digest()[:4], "big")
        return number < pilot.share * DRAWS

    def _possible(
        self, open_: np.ndarray, mask: np.ndarray, values: np.ndarray, pending: np.ndarray | None = None
    ) -> np.ndarray:
        coming = mask if pending is None else mask | pending
        found = open_ & ~mask & ~(coming @ self.excluding) & ~(~mask @ self.needs.T)
        for n, members in self.limits:
            found &= ~members | (coming[:, members].sum(axis=1, keepdims=True) < n)
        for i, _, tests in self.tests:
            for test in tests:
                found[:, i] &= test.holds(values[:, test.column])
        return np.asarray(found)

    def _add_pilot(self, rule: Rule, schema: Schema) -> None:
        (name,) = rule.features
        names = [*schema.features, *(column.name for column in schema.columns)]
        if name in names or name in [other.features[0] for other in self.pilots]:
            raise InvalidInput(f"constraints: {rule!r} names a feature that there is already; a pilot item is new.")
        self.pilots.append(rule)

    def _refuse_contradictions(self, schema: Schema) -> None:
        names, needed = schema.features, self._all_needed
        for i in np.flatnonzero(needed.diagonal()).tolist():
            self._refuse(f"{names[i]!r} would have to be known before itself", self._about(needed[i] & needed[:, i]))
        for i in range(len(names)):
            with_needs = needed[i].copy()
            with_needs[i] = True
            never = f"{names[i]!r} could never be asked"
            if (self.excluding[np.ix_(with_needs, with_needs)]).any():
                self._refuse(never, self._about(with_needs, "excludes", "requires", "only_if"))
            for n, members in self.limits:
                if (members & with_needs).sum() > n:
                    self._refuse(never, self._about(with_needs | members, "at_most", "requires", "only_if"))
            self._check_conditions(schema, with_needs, never)
            if self.first[i] and (needed[i] & ~self.first).any():
                what = names[int(np.flatnonzero(needed[i] & ~self.first)[0])]
                about = self._about(with_needs, "first", "requires", "only_if")
                self._refuse(f"{names[i]!r} is to come first, and needs {what!r} before it", about)
        leading = self.leading
        clash = self.excluding & leading & leading[:, None] & (self.must | self.must[:, None])
        if clash.any():
            pair = clash.any(axis=1)
            self._refuse("not all that is mandatory can be asked", self._about(pair, "excludes", "mandatory", "first"))
        for n, members in self.limits:
            if (members & leading).sum() > n and (members & self.must).any():
                about = self._about(members, "at_most", "mandatory", "first")
                self._refuse("not all that is mandatory can be asked", about)

    def _check_conditions(self, schema: Schema, features: np.ndarray, never: str) -> None:
        """Refuse conditions of a feature, and of what it needs, that cannot all hold."""
        by_column: dict[int, list[tuple[Rule, Test]]] = {}
        for i, rule, tests in self.tests:
            if features[i]:
                for test in tests:
                    by_column.setdefault(test.column, []).append((rule, test))
        for j, asked in by_column.items():
            cells = _representatives(schema.columns[j], [value for _, test in asked for value in test.values])
            if not np.logical_and.reduce([test.holds(cells) for _, test in asked]).any():
                self._refuse(never, [rule for rule, _ in asked])

    def _about(self, features: np.ndarray, *kinds: str) -> list[Rule]:
        """The rules of some kinds (all, if none are named) all of whose features, or two of them, are among these."""
        found = [(rule, at) for rule, at in self._places if rule.kind in kinds or not kinds]
        return [rule for rule, at in found if features[at].sum() >= min(2, len(at))]

    def _refuse(self, problem: str, rules: Sequence[Rule]) -> None:
        said = ", ".join(map(repr, rules))
        raise InvalidInput(f"constraints contradict each other: {problem}. See {said}; drop or change one of them.")


def house_rules(constraints: Any, schema: Schema) -> HouseRules | None:
    """The rules for the features of `schema`; None where there are none."""
    if constraints is None or (isinstance(constraints, list | tuple) and not constraints):
        return None
    return HouseRules(constraints, schema)


def _checked(rules: Any) -> tuple[Rule, ...]:
    if isinstance(rules, str | Rule) or not isinstance(rules, Iterable):
        raise InvalidInput(f"constraints must be a list of rules of askwise.constraints; got {rules!r}.")
    found = tuple(rules)
    for rule in found:
        if not isinstance(rule, Rule):
            raise InvalidInput(f"constraints must be a list of rules of askwise.constraints; it holds {rule!r}.")
        if rule.kind not in _READERS:
            raise InvalidInput(f"constraints: there is no rule {rule.kind!r}. The rules are: {', '.join(_READERS)}.")
    return found


def _position(name: Any, schema: Schema, rule: Rule) -> int:
    position = isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(schema.features)
    if position and name not in schema.features:
        return int(name)
    return schema.position(name, f"constraints: {rule!r}")


def _closure(needs: np.ndarray) -> np.ndarray:
    """(M, M) bool: what each feature needs, and what that needs in turn."""
    found = needs.copy()
    while True:
        more = found | (found @ found)
        if (more == found).all():
            return found
        found = more


def _tests(rule: Rule, schema: Schema, other: int) -> list[Test]:
    """The condition of a rule as tests of encoded cells."""
    columns = schema.feature_columns[other].tolist()
    names = [schema.columns[j].name for j in columns]
    given = rule.condition if isinstance(rule.condition, Mapping) else {names[0]: rule.condition}
    if (len(columns) > 1 and not isinstance(rule.condition, Mapping)) or not set(given) <= set(names):
        raise InvalidInput(
            f"constraints: {rule!r} must have a condition for columns out of {names}, as a dict; "
            f"got {rule.condition!r}."
        )
    return [
        _test(rule, schema.columns[columns[names.index(name)]], columns[names.index(name)], each)
        for name, each in given.items()
    ]


def _test(rule: Rule, column: Column, j: int, condition: Any) -> Test:
    comparison, values = "==", condition if isinstance(condition, tuple) else (condition,)
    found = CONDITION.fullmatch(condition) if isinstance(condition, str) else None
    try:
        if found is None:
            return Test(j, "==", tuple(column.encode_answer(value) for value in values))
        comparison = found[1]
        if column.is_category and comparison not in ("==", "!="):
            raise InvalidInput(f"The categories of {column.name!r} have no order; compare them with == or !=.")
        return Test(j, comparison, (column.parse_answer(found[2]),))
    except InvalidInput as error:
        raise InvalidInput(f"constraints: the condition of {rule!r} does not fit. {error}") from None


def _representatives(column: Column, values: Sequence[float]) -> np.ndarray:
    """Cells that decide whether conditions with these values can hold: the values, and something between them."""
    if column.is_category:
        return np.arange(len(column.values or ()), dtype=float)
    ends = sorted(set(values))
    between = [(low + high) / 2 for low, high in pairwise(ends)]
    return np.array([ends[0] - 1, *ends, *between, ends[-1] + 1])
