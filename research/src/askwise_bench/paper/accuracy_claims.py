"""The paper's claims about accuracy, calibration and entropy under budgets, and the evidence for each."""

from __future__ import annotations

from functools import partial

from askwise_bench.paper import evidence, paper_results
from askwise_bench.paper.claims import Claim, Term, agreement, compared, larger, opposite
from askwise_bench.report.rows import End, Quantity, data_name, method_name

BUT_VIP = " ".join(name for name in evidence.DYNAMIC if name != "vip")
ALL, GREEDY = " ".join(paper_results.METHODS), " ".join(paper_results.GREEDY)
REPARAMETRIZED = "rl-remlp > rl-mlp, greedy-remlp > greedy-mlp"
RANDOM = "random_entropy"
BOTH_REMLP = ("rl-remlp", "greedy-remlp")


def accuracy(prices: str, metric: str = "accuracy", data: str | None = None, end: End = "") -> Quantity:
    """A metric of the study of accuracy under these prices, on all of the data or on one of them."""
    return Quantity("accuracy", metric, {"prices": prices} | ({"data": data} if data else {}), end)


def better(prices: str, sentence: str, pairs: str) -> Claim:
    """The first method of each pair is the more accurate one, and so it is in print."""
    return compared(sentence, accuracy(prices), pairs, printed(prices), scale=100)


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
    sentence = "Section 4.2: It helps on every data set under both policies, except for the greedy one on Yeast"
    return Claim(sentence, terms, agreement(not against, ", ".join(against)))


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


random_prices, equal_prices = partial(better, "variable"), partial(better, "uniform")
_EASIER = [name for name, row in paper_results.UNIFORM.items() if row.average > paper_results.VARIABLE[name].average]
_STATIC = paper_results.UNIFORM["static-cmi"].average
_BELOW_STATIC = [name for name in evidence.DYNAMIC if paper_results.UNIFORM[name].average < _STATIC]
_N_DYNAMIC = len(evidence.DYNAMIC)

ACCURACY_CLAIMS = [
    random_prices("Table 1: RL ReMLP has the best average accuracy", f"rl-remlp > {ALL}"),
    random_prices("Section 4.2: VIP is the best greedy method", f"vip > {GREEDY}"),
    random_prices(
        "Section 4.2: With a neural backbone RL beats the greedy policy", "rl-remlp > greedy-remlp, rl-mlp > greedy-mlp"
    ),
    random_prices(
        "Section 4.2: With a rule-based backbone RL is worse than the greedy policy",
        "greedy-cart > rl-cart, greedy-ftree > rl-ftree",
    ),
    random_prices(
        "Section 4.2: Reparametrization helps on average: ReMLP beats MLP under both policies", REPARAMETRIZED
    ),
    on_each_table(),
    random_prices("Table 1: DIME is the worst greedy method", f"{GREEDY} > dime"),
    random_prices("Section 5: Greedy CART beats CWCF, DIME and INVASE", "greedy-cart > cwcf dime invase"),
    random_prices(
        "Section 5: Neural backbones beat rule-based ones",
        "rl-remlp rl-mlp > rl-cart rl-ftree, greedy-remlp greedy-mlp > greedy-cart greedy-ftree",
    ),
    Claim(
        "Figure 1: The choices of ReMLP and VIP beat random ones",
        [gain(f"{method_name(name)}, points gained", name) for name in (*BOTH_REMLP, "vip")],
    ),
    Claim(
        "Figure 1: The choices of DIME are hardly better than random ones (by less than a point)",
        [gain("1 minus the points gained", "dime", 1.0, -1)],
    ),
    Claim(
        "Section 5: Entropy falls with the budget, by own and by random choices",
        [fall("nats, own choices", (1, "entropy")), fall("nats, random choices", (1, RANDOM))],
    ),
    Claim(
        "Section 5: It falls about as much by random choices (at least 0.8 times as much)",
        [fall("fall by random choices minus 0.8 times that by own ones, nats", (1, RANDOM), (-0.8, "entropy"))],
    ),
    Claim(
        "Section 5: More budget can mean less accuracy", evidence.most_lost("variable", tuple(paper_results.METHODS))
    ),
    Claim(
        "Section 4.2: Static CMI remains competitive under random prices (no more than a point below the median)",
        evidence.static_and_the_median("variable", 1.0),
    ),
    Claim(
        "Section 4.2: Greedy CART is comparable to static CMI under random prices (within a point)",
        [
            Term(
                f"1 minus the points {word} static CMI",
                [(-100 * sign, "greedy-cart", accuracy("variable")), (100 * sign, "static-cmi", accuracy("variable"))],
                1.0,
            )
            for word, sign in (("over", 1), ("below", -1))
        ],
        agreement(abs(printed("variable")["greedy-cart"] - printed("variable")["static-cmi"]) < 1),
    ),
    equal_prices("Appendix E: VIP has the best average accuracy", f"vip > {ALL}"),
    equal_prices(
        "Appendix E: No dynamic method except VIP beats static CMI", f"vip > static-cmi, static-cmi > {BUT_VIP}"
    ),
    Claim(
        "Appendix E: Static CMI beats half of the dynamic methods, six of twelve",
        evidence.static_and_the_median("uniform"),
        agreement(2 * len(_BELOW_STATIC) == _N_DYNAMIC, f"{len(_BELOW_STATIC)} of {_N_DYNAMIC} are below it"),
    ),
    equal_prices("Appendix E: TabNet is below static CMI", "static-cmi > tabnet"),
    equal_prices(
        "Appendix E: RL beats the greedy policy for every backbone",
        ", ".join(f"rl-{name} > greedy-{name}" for name in ("remlp", "mlp", "cart", "ftree")),
    ),
    equal_prices("Appendix E: Rule-based methods with RL beat CWCF", "rl-cart rl-ftree > cwcf"),
    Claim(
        "Appendix E: Every method is better under equal prices than under random ones",
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
    Claim("Appendix E: On Wine most methods pass 95 % with 8 features", evidence.wine_is_easy),
    Claim(
        "Appendix E: On Diabetes VIP and RL ReMLP are calibrated (ECE below 0.03)",
        [
            Term(
                f"0.03 minus the ECE of {method_name(name)}",
                [(-1, name, accuracy("variable", "ece", "diabetes130"))],
                0.03,
            )
            for name in ("vip", "rl-remlp")
        ],
    ),
    Claim("Appendix E: On Wine most methods have an ECE of 0.15 to 0.26", evidence.wine_calibration),
    Claim(
        "Appendix E: On Wine VIP is worst calibrated with four budgets of ten spent", evidence.vip_worst_in_the_middle
    ),
    Claim(
        "Appendix E: On Wine RL ReMLP is the best calibrated",
        [
            Term(
                f"ECE of {method_name(name)} minus that of RL ReMLP*",
                [
                    (1, name, accuracy("variable", "ece", "wine")),
                    (-1, "rl-remlp", accuracy("variable", "ece", "wine")),
                ],
            )
            for name in paper_results.IN_FIGURES
            if name != "rl-remlp"
        ],
    ),
    Claim("Appendix E: On Diabetes accuracy hardly rises beyond 5 features (less than a point)", evidence.plateau),
    Claim(
        "Appendix E: On Diabetes CART ends below the others",
        larger(
            accuracy("uniform", data="diabetes130", end="max"),
            f"{' '.join(name for name in paper_results.IN_FIGURES if name != 'greedy-cart')} > greedy-cart",
            100,
        ),
    ),
]
