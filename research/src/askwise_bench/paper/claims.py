"""How a sentence of the paper is judged by our own rows, and how it is stated: as numbers that must be above 0.

There is one number per seed and table: a paired difference, or the distance to a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from askwise_bench.paper import paper_results
from askwise_bench.paper.findings import (
    FAILS,
    FEWEST_SEEDS,
    NOT_MEASURED,
    SCALES,
    UNDECIDED,
    Finding,
    Scale,
    seeds_to_decide,
    test_to_training,
    together,
)
from askwise_bench.report.rows import Quantity, data_name, method_name, ordered_data

MOST_NUMBERS = 3
SINGLE = ("subset", "case", "bin", "draw")
Methods = str | Sequence[str] | None


@dataclass(frozen=True)
class Verdict:
    """What is claimed and where, the verdict, the numbers behind it, and whether the paper's own figures agree.

    `weakest` is the number that decides or keeps it open, and `seeds` are those of each table. `still_open` says of an
    undecided one what the data leave possible, and how many seeds would decide it. A `stale` one rests on rows whose
    code has changed since.
    """

    claim: str
    where: str
    verdict: str
    number: str
    printed: str = ""
    still_open: str = ""
    weakest: str = ""
    seeds: str = ""
    stale: bool = False


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper ("where: what"), the evidence for it, and whether the paper's own figures agree."""

    sentence: str
    evidence: Sequence[Term] | Callable[[pd.DataFrame], list[Finding]]
    printed: str = ""

    @property
    def where(self) -> str:
        """The section, table or figure."""
        return self.sentence.split(": ")[0]

    @property
    def text(self) -> str:
        """What is claimed."""
        return self.sentence.split(": ", 1)[1]

    def look(self, rows: pd.DataFrame) -> list[Finding]:
        """What the rows say about it."""
        return self.evidence(rows) if callable(self.evidence) else [term.find(rows) for term in self.evidence]


def judged(claim: Claim, findings: Sequence[Finding]) -> Verdict:
    """All of the findings must hold; one that does not refutes, and one that is missing leaves it open."""
    found = sorted((f for f in findings if f.measured), key=lambda finding: finding.mean)
    if not found:
        return Verdict(claim.text, claim.where, NOT_MEASURED, "-", claim.printed)
    verdict = together([finding.verdict(len(found)) for finding in findings])
    number = "; ".join(map(str, found[:MOST_NUMBERS]))
    if len(found) > MOST_NUMBERS:
        number += f"; higher in {len(found) - MOST_NUMBERS} more"
    if len(found) < len(findings):
        number += f"; {len(findings) - len(found)} of {len(findings)} comparisons not measured"
    seeds = _measured_on(found)
    weakest = min(found, key=lambda finding: finding.interval()[verdict == FAILS])
    return Verdict(
        claim.text,
        claim.where,
        verdict,
        f"{number}. Seeds: {seeds}." if seeds else f"{number}.",
        claim.printed,
        _open(findings) if verdict == UNDECIDED else "",
        str(weakest),
        seeds,
    )


def all_judged(claims: Sequence[Claim], rows: pd.DataFrame, stale: pd.Series | None = None) -> list[Verdict]:
    """Each claim by the same rows, with the ratio of test to training rows that they were measured with.

    `stale` says of each row whether its code has changed since; a claim that reads otherwise without these is stale.
    """
    ratios = test_to_training(rows)
    whole = (
        rows[list(SINGLE)].isna().all(axis=1)
    )  # most rows are of single subsets, cases and bins; no claim needs them
    rows, stale = rows[whole], None if stale is None else stale[whole]

    def verdicts(rows: pd.DataFrame) -> list[Verdict]:
        return [judged(claim, [replace(finding, ratios=ratios) for finding in claim.look(rows)]) for claim in claims]

    found = verdicts(rows)
    if stale is None or not stale.any():
        return found
    fresh = verdicts(rows[~stale])
    return [replace(line, stale=line.number != other.number) for line, other in zip(found, fresh, strict=True)]


def _measured_on(found: Sequence[Finding]) -> str:
    """The tables, and the seeds of each."""
    seeds: dict[str, set[int]] = {}
    for finding in found:
        for data, values in finding.samples.items():
            seeds.setdefault(data, set()).add(len(values))
    if not seeds:
        return ""
    counts = {data: f"{min(n)} to {max(n)}" if len(n) > 1 else f"{max(n)}" for data, n in seeds.items()}
    return ", ".join(f"{data_name(name)} {counts[name]}" for name in ordered_data(seeds))


def _open(findings: Sequence[Finding]) -> str:
    """What the least known finding leaves possible, and how many seeds would decide the claim."""
    n_found = sum(finding.measured for finding in findings)
    left = [finding for finding in findings if finding.verdict(n_found) == UNDECIDED]
    told = []
    if left:
        widest = max(left, key=lambda finding: max(abs(end) for end in finding.interval()))
        told.append(f"{widest.what.rstrip(':')}: {widest.bound}")
    if n_found < len(findings):
        told.append("the missing comparisons come first")
    elif min(finding.seeds for finding in left) < FEWEST_SEEDS:
        told.append(f"{FEWEST_SEEDS} seeds at least")
    else:
        needed = seeds_to_decide(list(findings))
        told.append(
            "no number of seeds would decide it" if needed is None else f"about {needed} seeds a table would decide it"
        )
    return "; ".join(told)


def agreement(agree: bool, why: str = "") -> str:
    """Whether the paper's own figures agree with its sentence, and if not, why."""
    return "agree" if agree else f"contradict: {why}"


@dataclass(frozen=True)
class Term:
    """What must be above 0: a sum of quantities, each times a factor, plus a margin.

    A part is (factor, method, quantity); of several methods, or all (None), it is the mean. The quantities are compared
    at the budgets that all of them have, unless they are not `paired`.
    """

    what: str
    parts: Sequence[tuple[float, Methods, Quantity]]
    margin: float = 0.0
    paired: bool = True

    @property
    def scale(self) -> Scale:
        """That of its quantities where it is a difference of one kind of them; else no size of it is called none."""
        kinds = {SCALES.get(quantity.metric, Scale()) for _, _, quantity in self.parts}
        difference = not self.margin and abs(sum(factor for factor, _, _ in self.parts)) < 1e-9
        if not difference or len(kinds) > 1:
            return Scale()
        return kinds.pop().times(max(abs(factor) for factor, _, _ in self.parts))

    def find(self, rows: pd.DataFrame) -> Finding:
        """The term by seed, over the paper's data."""
        keys = ["data", "seed", "budget"] if self.paired else ["data", "seed"]
        found = []
        for factor, method, quantity in self.parts:
            values = mean_of(rows, method, quantity, keys)
            if values.empty:
                return Finding(self.what)
            found.append(factor * values)
        total = sum(found[1:], found[0]).dropna()
        return Finding.over(self.what, total.groupby(["data", "seed"]).mean() + self.margin, self.scale)


def mean_of(rows: pd.DataFrame, methods: Methods, quantity: Quantity, keys: list[str]) -> pd.Series:
    """A quantity by `keys`, with budget 0 where it has none."""
    chosen = quantity.of(rows)
    if chosen.empty:
        return pd.Series(dtype=float, index=pd.MultiIndex.from_arrays([[] for _ in keys], names=keys))
    chosen = chosen[chosen["data"].isin([*paper_results.DATA, *paper_results.IMAGES])]
    if methods is not None:
        chosen = chosen[chosen["method"].isin([methods] if isinstance(methods, str) else methods)]
    return chosen.fillna({"budget": 0.0}).groupby(keys)["value"].mean()


def compared(
    sentence: str, quantity: Quantity, pairs: str, printed: Mapping[str, float] | None = None, *, scale: float = 1
) -> Claim:
    """The first method of each of the pairs has the larger value, and so has it in print."""
    against = opposite(pairs, printed) if printed else []
    agree = agreement(not against, ", ".join(against)) if printed else ""
    return Claim(sentence, larger(quantity, pairs, scale), agree)


def opposite(pairs: str, printed: Mapping[str, float], on: str = "") -> list[str]:
    """The pairs of which the paper prints the opposite."""
    return [
        f"{method_name(a)} {printed[a]} and {method_name(b)} {printed[b]}{on}"
        for a, b in paired(pairs)
        if printed[a] <= printed[b]
    ]


def larger(quantity: Quantity, pairs: str, scale: float = 1.0, on: str = "") -> list[Term]:
    """The first method of each of the pairs has the larger value."""
    return [
        Term(f"{method_name(a)} over {method_name(b)}{on}", [(scale, a, quantity), (-scale, b, quantity)])
        for a, b in paired(pairs)
    ]


def paired(text: str) -> list[tuple[str, str]]:
    """The pairs of methods in ``"a b > c d, e > f"``: each on the left with each other one on the right."""
    sides = [[side.split() for side in part.split(">")] for part in text.split(",")]
    return [(a, b) for left, right in sides for a in left for b in right if a != b]
