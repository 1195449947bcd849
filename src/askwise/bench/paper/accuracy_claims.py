"""The paper's claims about accuracy, calibration and entropy under budgets, and the evidence for each."""

from __future__ import annotations

from askwise.bench.paper import evidence, paper_results
from askwise.bench.paper.claims import Claim, Term, agreement, compared, larger, opposite
from askwise.bench.report.rows import End, Quantity, data_name, method_name

BUT_VIP = " ".join(name for name in evidence.DYNAMIC if name != "vip")
ALL, GREEDY = " ".join(paper_results.METHODS), " ".join(paper_results.GREEDY)
REPARAMETRIZED = "rl-remlp > rl-mlp, greedy-remlp > greedy-mlp"
BOTH_REMLP = ("rl-remlp", "greedy-remlp")


def accuracy(prices: str, metric: str = "accuracy", data: str | None = None, end: End = "") -> Quantity:
    """A metric of the study of accuracy under these prices, on all of the data or on one of them."""
    return Quantity("accuracy", metric, {"prices": prices} | ({"data": data} if data else {}), end)


def better(text: str, where: str, prices: str, pairs: str) -> Claim:
    """The first method of each pair is the more accurate one, and so it is in print."""
    return compared(text, where, accuracy(prices), pairs, printed(prices), scale=100)


def printed(prices: str, data: str | None = None) -> dict[str, float]:
    """The average accuracy that the paper prints for each method, or that on one data set."""
    rows = paper_results.ACCURACIES[prices]
    return {name: row.by_data[data][0] if data else row.average for name, row in rows.items()}


def on_each_table() -> Claim:
    """ReMLP beats MLP everywhere but on Yeast with the greedy policy."""
    tables = {data: "rl-remlp > rl-mlp" if data == "yeast" else REPARAMETRIZED for data in paper_results.DATA}
    terms = [
        term
        for data, pairs in tables.items()
        for term in larger(accuracy("variable", data=data), pairs, 100, f" on {data_name(data)}")
    ]
    against = [
        said
        for data, pairs in tables.items()
        for said in opposite(pairs, printed("variable", data), f" on {data_name(data)}")
    ]
    text = "It helps on every data set under both policies, except for the greedy one on Yeast"
    return Claim(text, "Section 4.2", terms, agreement(not against, ", ".join(against)))


def gain(what: str, method: str, margin: float = 0.0, sign: int = 1) -> Term:
    """Points of accuracy that the choices of a method gain over random ones, plus a margin."""
    own, at_random = accuracy("variable"), accuracy("variable", "random_accuracy")
    return Term(what, [(100 * sign, method, own), (-100 * sign, method, at_random)], margin)


def fall(what: str, *parts: tuple[float, str]) -> Term:
    """Entropy at the lowest budget minus that at the highest, mean over the paper's methods, times factors."""
    ends: tuple[tuple[int, End], ...] = ((1, "min"), (-1, "max"))
    found = [
        (factor * sign, tuple(paper_results.METHODS), accuracy("variable", metric, end=end))
        for factor, metric in parts
        for sign, end in ends
    ]
    return Term(what, found, paired=False)


_EASIER = [name for name, row in paper_results.UNIFORM.items() if row.average > paper_results.VARIABLE[name].average]
_STATIC = paper_results.UNIFORM["static-cmi"].average
_BELOW_STATIC = [name for name in evidence.DYNAMIC if paper_results.UNIFORM[name].average < _STATIC]
_N_DYNAMIC = len(evidence.DYNAMIC)

ACCURACY_CLAIMS = [
    better("RL ReMLP has the best average accuracy", "Table 1", "variable", f"rl-remlp > {ALL}"),
    better("VIP is the best greedy method", "Section 4.2", "variable", f"vip > {GREEDY}"),
    better(
        "With a neural backbone RL beats the greedy policy",
        "Section 4.2",
        "variable",
        "rl-remlp > greedy-remlp, rl-mlp > greedy-mlp",
    ),
    better(
        "With a rule-based backbone RL is worse than the greedy policy",
        "Section 4.2",
        "variable",
        "greedy-cart > rl-cart, greedy-ftree > rl-ftree",
    ),
    better(
        "Reparametrization helps on average: ReMLP beats MLP under both policies",
        "Section 4.2",
        "variable",
        REPARAMETRIZED,
    ),
    on_each_table(),
    better("DIME is the worst greedy method", "Table 1", "variable", f"{GREEDY} > dime"),
    better("Greedy CART beats CWCF, DIME and INVASE", "Section 5", "variable", "greedy-cart > cwcf dime invase"),
    better(
        "Neural backbones beat rule-based ones",
        "Section 5",
        "variable",
        "rl-remlp rl-mlp > rl-cart rl-ftree, greedy-remlp greedy-mlp > greedy-cart greedy-ftree",
    ),
    Claim(
        "The choices of ReMLP and VIP beat random ones",
        "Figure 1",
        [gain(f"{method_name(name)}, points gained", name) for name in (*BOTH_REMLP, "vip")],
    ),
    Claim(
        "The choices of DIME are hardly better than random ones (by less than a point)",
        "Figure 1",
        [gain("1 minus the points gained", "dime", 1.0, -1)],
    ),
    Claim(
        "Entropy falls with the budget, by own and by random choices",
        "Section 5",
        [fall("nats, own choices", (1, "entropy")), fall("nats, random choices", (1, "random_entropy"))],
    ),
    Claim(
        "It falls about as much by random choices (at least 0.8 times as much)",
        "Section 5",
        [
            fall(
                "fall by random choices minus 0.8 times that by own ones, nats",
                (1, "random_entropy"),
                (-0.8, "entropy"),
            )
        ],
    ),
    Claim("More budget can mean less accuracy", "Section 5", evidence.accuracy_not_monotone),
    better("VIP has the best average accuracy", "Appendix E", "uniform", f"vip > {ALL}"),
    better(
        "No dynamic method except VIP beats static CMI",
        "Appendix E",
        "uniform",
        f"vip > static-cmi, static-cmi > {BUT_VIP}",
    ),
    Claim(
        "Static CMI beats half of the dynamic methods, six of twelve",
        "Appendix E",
        evidence.static_beats_half,
        agreement(2 * len(_BELOW_STATIC) == _N_DYNAMIC, f"{len(_BELOW_STATIC)} of {_N_DYNAMIC} are below it"),
    ),
    better("TabNet is below static CMI", "Appendix E", "uniform", "static-cmi > tabnet"),
    better(
        "RL beats the greedy policy for every backbone",
        "Appendix E",
        "uniform",
        ", ".join(f"rl-{name} > greedy-{name}" for name in ("remlp", "mlp", "cart", "ftree")),
    ),
    better("Rule-based methods with RL beat CWCF", "Appendix E", "uniform", "rl-cart rl-ftree > cwcf"),
    Claim(
        "Every method is better under equal prices than under random ones",
        "Appendix E",
        [
            Term(
                f"{method_name(name)}, points",
                [(100, name, accuracy("uniform")), (-100, name, accuracy("variable"))],
                paired=False,
            )
            for name in paper_results.METHODS
        ],
        agreement(len(_EASIER) == len(paper_results.UNIFORM), f"{len(_EASIER)} of {len(paper_results.UNIFORM)}"),
    ),
    Claim("On Wine most methods pass 95 % with 8 features", "Appendix E", evidence.wine_is_easy),
    Claim(
        "On Diabetes VIP and RL ReMLP are calibrated (ECE below 0.03)",
        "Appendix E",
        [
            Term(
                f"0.03 minus the ECE of {method_name(name)}",
                [(-1, name, accuracy("variable", "ece", "diabetes130"))],
                0.03,
            )
            for name in ("vip", "rl-remlp")
        ],
    ),
]
