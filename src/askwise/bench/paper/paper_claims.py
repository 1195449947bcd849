"""What the paper says in words, claim by claim, with what must be above 0 for each to hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import pandas as pd

from askwise.bench.paper import paper_results
from askwise.bench.paper.claims import (
    DYNAMIC,
    Claim,
    Pair,
    Source,
    Term,
    Verdict,
    accuracy_not_monotone,
    against_random,
    better,
    better_on_each,
    calibrated_on_diabetes,
    entropy_falls,
    entropy_falls_alike,
    equal_prices_are_easier,
    hardly_beats_random,
    in_print,
    in_print_on_each,
    judged,
    static_beats_half,
    wine_is_easy,
)
from askwise.bench.report.tables import method_name
from askwise.bench.studies.policies import RISK_WEIGHTS

BY_RL = ("rl-remlp", "rl-mlp", "cwcf")
REPARAMETRIZED_PAIRS = [
    (data, (f"{policy}-remlp", f"{policy}-mlp"))
    for data in paper_results.DATA
    for policy in ("rl", "greedy")
    if (data, policy) != ("yeast", "greedy")
]
"""Where the paper says that ReMLP beats MLP: everywhere but on Yeast with the greedy policy."""

NO_WEIGHT = "lambda[0]/epistemic"
POSITIVE_WEIGHTS = [f"lambda[{weight:g}]/epistemic" for weight in RISK_WEIGHTS if weight > 0]
NEGATIVE_WEIGHTS = [f"lambda[{weight:g}]/epistemic" for weight in RISK_WEIGHTS if weight < 0]
RULES_AND_NETWORKS = [
    (f"{policy}-{network}", f"{policy}-{rules}")
    for policy in ("rl", "greedy")
    for network in ("remlp", "mlp")
    for rules in ("cart", "ftree")
]


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Every claim, in the order of the paper."""
    return [judged(claim, claim.look(rows)) for claim in CLAIMS]


def _comparison(text: str, where: str, prices: str, pairs: Sequence[Pair]) -> Claim:
    return Claim(text, where, partial(better, prices, pairs), in_print(prices, pairs))


def _beyond(text: str, prices: str, pairs: Sequence[Pair]) -> Claim:
    return Claim(text, "beyond the paper", partial(better, prices, pairs))


def _against_all(best: str, others: Iterable[str]) -> list[Pair]:
    return [(best, name) for name in others if name != best]


def _measured(text: str, where: str, terms: Sequence[Term], printed: str = "") -> Claim:
    return Claim(text, where, lambda rows: [term.find(rows) for term in terms], printed)


def _between(metric: str, pairs: Iterable[Pair], scale: float = 1.0) -> list[Term]:
    """The first method of each pair has the larger value."""
    return [Term(f"{method_name(a)} over {method_name(b)}", (a, metric), (b, metric), scale=scale) for a, b in pairs]


def _steps_of_shift(method: str, metric: str) -> list[Term]:
    """The metric grows from each sigma to the next."""
    return [
        Term(
            f"{method_name(method)}, {low:g} to {high:g}:",
            _shifted(method, metric, high),
            _shifted(method, metric, low),
        )
        for low, high in pairwise(paper_results.SHIFT_SIGMAS)
    ]


def _shifted(method: str, metric: str, sigma: float) -> Source:
    return method, f"shift[sigma={sigma:g}]/{metric}"


def _said(condition: bool, why: str = "") -> str:
    return "agree" if condition else f"contradict: {why}"


def _lowest(table: Mapping[str, Sequence[float]], column: int) -> str:
    return min(table, key=lambda name: table[name][column])


_SHIFTED = sorted({name for name, _ in paper_results.SHIFT})
_LOST = max(100 * (line[0][0] - line[k][0]) for line in paper_results.SHIFT.values() for k in (1, 2))
_VARIANCES = [[cell[2] for cell in line if cell[2] is not None] for line in paper_results.SHIFT.values()]
_CALMER = [f"{method_name(n)} at {b} %" for (n, b), line in paper_results.SHIFT.items() if line[0][1] >= line[-1][1]]
_EASIER = [name for name, row in paper_results.UNIFORM.items() if row.average > paper_results.VARIABLE[name].average]
_BELOW_STATIC = [
    name for name in DYNAMIC if paper_results.UNIFORM[name].average < paper_results.UNIFORM["static-cmi"].average
]

CLAIMS = [
    _comparison(
        "RL ReMLP has the best average accuracy", "Table 1", "variable", _against_all("rl-remlp", paper_results.METHODS)
    ),
    _comparison("VIP is the best greedy method", "Section 4.2", "variable", _against_all("vip", paper_results.GREEDY)),
    _comparison(
        "With a neural backbone RL beats the greedy policy",
        "Section 4.2",
        "variable",
        [("rl-remlp", "greedy-remlp"), ("rl-mlp", "greedy-mlp")],
    ),
    _comparison(
        "With a rule-based backbone RL is worse than the greedy policy",
        "Section 4.2",
        "variable",
        [("greedy-cart", "rl-cart"), ("greedy-ftree", "rl-ftree")],
    ),
    _comparison(
        "Reparametrization helps on average: ReMLP beats MLP under both policies",
        "Section 4.2",
        "variable",
        [("rl-remlp", "rl-mlp"), ("greedy-remlp", "greedy-mlp")],
    ),
    Claim(
        "It helps on every table under both policies, but for the greedy one on Yeast",
        "Section 4.2",
        partial(better_on_each, "variable", REPARAMETRIZED_PAIRS),
        in_print_on_each("variable", REPARAMETRIZED_PAIRS),
    ),
    _comparison(
        "DIME is the worst greedy method",
        "Table 1",
        "variable",
        [(name, "dime") for name in paper_results.GREEDY if name != "dime"],
    ),
    _comparison(
        "Greedy CART beats CWCF, DIME and INVASE",
        "Section 5",
        "variable",
        [("greedy-cart", name) for name in ("cwcf", "dime", "invase")],
    ),
    _comparison("Neural backbones beat rule-based ones", "Section 5", "variable", RULES_AND_NETWORKS),
    Claim(
        "The choices of ReMLP and VIP beat random ones",
        "Figure 1",
        partial(against_random, ("rl-remlp", "greedy-remlp", "vip")),
    ),
    Claim(
        "The choices of DIME are hardly better than random ones (by less than a point)",
        "Figure 1",
        partial(hardly_beats_random, "dime", 1.0),
    ),
    Claim("Entropy falls with the budget, whoever chooses", "Section 5", entropy_falls),
    Claim("It falls about as much by random choices (at least 0.8 times)", "Section 5", entropy_falls_alike),
    Claim("More budget can mean less accuracy", "Section 5", accuracy_not_monotone),
    _comparison(
        "VIP has the best average accuracy", "Appendix E", "uniform", _against_all("vip", paper_results.METHODS)
    ),
    _comparison(
        "No dynamic method but VIP beats static CMI",
        "Appendix E",
        "uniform",
        [("vip", "static-cmi"), *(("static-cmi", name) for name in DYNAMIC if name != "vip")],
    ),
    Claim(
        "Static CMI beats half of the dynamic methods, six of twelve",
        "Appendix E",
        static_beats_half,
        _said(2 * len(_BELOW_STATIC) == len(DYNAMIC), f"{len(_BELOW_STATIC)} of {len(DYNAMIC)} are below it"),
    ),
    _comparison("TabNet is below static CMI", "Appendix E", "uniform", [("static-cmi", "tabnet")]),
    _comparison(
        "RL beats the greedy policy for every backbone",
        "Appendix E",
        "uniform",
        [(f"rl-{name}", f"greedy-{name}") for name in ("remlp", "mlp", "cart", "ftree")],
    ),
    _comparison(
        "Rule-based methods with RL beat CWCF", "Appendix E", "uniform", [("rl-cart", "cwcf"), ("rl-ftree", "cwcf")]
    ),
    Claim(
        "Every method is better under equal prices than under random ones",
        "Appendix E",
        equal_prices_are_easier,
        _said(len(_EASIER) == len(paper_results.UNIFORM), f"{len(_EASIER)} of {len(paper_results.UNIFORM)}"),
    ),
    Claim("On Wine most methods pass 95 % with 8 features", "Appendix E", wine_is_easy),
    Claim("On Diabetes VIP and RL ReMLP are calibrated (ECE below 0.03)", "Appendix E", calibrated_on_diabetes),
    _measured(
        "Positive lambda lowers epistemic uncertainty",
        "Table 2",
        [Term("e at 0 less e above it:", (None, NO_WEIGHT), (None, POSITIVE_WEIGHTS))],
        _said(paper_results.LAMBDA["positive"][2] < paper_results.LAMBDA["zero"][2]),
    ),
    _measured(
        "Negative lambda raises epistemic uncertainty",
        "Table 2",
        [Term("e below 0 less e at it:", (None, NEGATIVE_WEIGHTS), (None, NO_WEIGHT))],
        _said(paper_results.LAMBDA["negative"][2] > paper_results.LAMBDA["zero"][2]),
    ),
    _measured(
        "Lambda of 0.1 is more accurate than 0",
        "Section 4.2",
        [Term("points", (None, "lambda[0.1]/accuracy"), (None, "lambda[0]/accuracy"), scale=100)],
    ),
    _measured(
        "DIME is nearest to the model of the subset",
        "Table 3",
        _between("bias/kl_ref", [(name, "dime") for name in paper_results.BIAS if name != "dime"]),
        _said(_lowest(paper_results.BIAS, 0) == "dime"),
    ),
    _measured(
        "Greedy CART is farthest from it",
        "Table 3",
        _between("bias/kl_ref", _against_all("greedy-cart", paper_results.BIAS)),
        _said(max(paper_results.BIAS, key=lambda name: paper_results.BIAS[name][0]) == "greedy-cart"),
    ),
    _measured(
        "Methods trained by RL lean to the full model more than DIME does (KL ratio)",
        "Section 4.2",
        _between("bias/kl_ratio", [(name, "dime") for name in BY_RL]),
        _said(_lowest(paper_results.BIAS, 2) == "dime"),
    ),
    _measured(
        "They agree with the full model more than DIME does (KL to it)",
        "Section 4.2",
        _between("bias/kl_full", [("dime", name) for name in BY_RL]),
        _said(_lowest(paper_results.BIAS, 1) != "dime", "DIME is the nearest of all"),
    ),
    _measured(
        "Entropy rejects better than aleatoric, epistemic uncertainty or variance (AURC)",
        "Appendix E",
        [
            Term(
                f"{method_name(m)}, {other}:", (m, f"selective[{other}]/aurc"), (m, "selective[total]/aurc"), scale=100
            )
            for m in ("greedy-cart", "rl-mlp", "rl-remlp")
            for other in ("aleatoric", "mutual_information", "variance")
        ],
    ),
    _measured(
        "VIP has the lowest AURC",
        "Appendix E",
        _between("selective[total]/aurc", [(name, "vip") for name in paper_results.SELECTIVE if name != "vip"], 100),
        _said(_lowest(paper_results.SELECTIVE, 0) == "vip"),
    ),
    _measured(
        "Reparametrization helps to find failures (AUROC)",
        "Appendix E",
        _between("selective[total]/auroc", [("rl-remlp", "rl-mlp")], 100),
        _said(paper_results.SELECTIVE["rl-remlp"][2] > paper_results.SELECTIVE["rl-mlp"][2]),
    ),
    _measured(
        "Noise of up to 0.2 costs less than 4 points of accuracy",
        "Appendix F",
        [
            Term(
                f"{method_name(m)}, 4 less the loss:", _shifted(m, "accuracy", 0.2), _shifted(m, "accuracy", 0), 4, 100
            )
            for m in _SHIFTED
        ],
        _said(_LOST < 4, f"{_LOST:.0f}"),
    ),
    _measured(
        "Ensemble variance grows with every step of the noise",
        "Appendix F",
        [term for name in ("greedy-cart", "rl-remlp") for term in _steps_of_shift(name, "variance")],
        _said(
            all(low < high for line in _VARIANCES for low, high in pairwise(line)), "one step shows no change in print"
        ),
    ),
    _measured(
        "The calibration error of every method grows with the noise (0 to 2)",
        "Appendix F",
        [Term(f"{method_name(m)}:", _shifted(m, "ece", 2), _shifted(m, "ece", 0)) for m in _SHIFTED],
        _said(not _CALMER, ", ".join(_CALMER)),
    ),
    _measured(
        "For greedy CART ensemble variance tells the subsets with a large risk gap",
        "Appendix F",
        [Term("Pearson's r", ("greedy-cart", "risk_gap[error]/pearson_variance"))],
        _said(sum(r for (name, _), (r, _) in paper_results.RISK_GAP.items() if name == "greedy-cart") > 0),
    ),
    _measured(
        "For RL ReMLP there is hardly a gap (between -0.02 and 0.02)",
        "Appendix F",
        [
            Term("0.02 less the gap", ("rl-remlp", "risk_gap[error]/mean_delta"), margin=0.02, scale=-1),
            Term("0.02 plus the gap", ("rl-remlp", "risk_gap[error]/mean_delta"), margin=0.02),
        ],
    ),
    _measured(
        "Reparametrization narrows the risk gap",
        "Appendix F",
        [
            Term(
                "|gap|:", ("rl-remlp", "reparam/mean_abs_delta_imputed"), ("rl-remlp", "reparam/mean_abs_delta_adapted")
            )
        ],
        _said(paper_results.REPARAMETRIZATION["all"][3] < paper_results.REPARAMETRIZATION["all"][2]),
    ),
    _measured(
        "Cases of high aleatoric uncertainty have low epistemic uncertainty",
        "Appendix F",
        [Term("minus Spearman's rho, mean over methods", (None, "scatter/spearman"), scale=-1)],
    ),
    _beyond(
        "The default of this library beats RL ReMLP, VIP and the best fixed subset",
        "variable",
        [("askwise", name) for name in ("rl-remlp", "vip", "static-best")],
    ),
]
