"""What the paper says in words, claim by claim, with what must be above 0 for each to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise, permutations, product

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from askwise_bench.paper import evidence
from askwise_bench.paper import paper_results as paper
from askwise_bench.paper.accuracy_claims import ACCURACY_CLAIMS, BOTH_REMLP, accuracy, gain, printed
from askwise_bench.paper.claims import Claim, Term, Verdict, agreement, all_judged, compared, larger
from askwise_bench.paper.findings import Finding
from askwise_bench.paper.image_claims import IMAGE_CLAIMS
from askwise_bench.report import illustrations
from askwise_bench.report.rows import Quantity, data_name, method_name
from askwise_bench.report.uncertainty_tables import OF_THE_PAPER, SELECTIVE_COLUMNS
from askwise_bench.studies.policies import RISK_WEIGHTS

BY_RL = "rl-remlp rl-mlp cwcf"
WITH_MEMBERS = ("greedy-cart", "rl-mlp", "rl-remlp")
JOINT, SEPARATE = ("dime", "vip"), ("greedy-cart", "rl-remlp")
SIGNS = {"AURC": 1, "AUROC": -1, "risk at 80 %": 1, "risk at 90 %": 1}
"""Metrics of selective prediction: times the sign, more is worse."""


def verdicts(rows: pd.DataFrame, stale: pd.Series | None = None) -> list[Verdict]:
    """Every claim, in the order of the paper; `stale` are the rows whose code has changed since."""
    return all_judged(CLAIMS, rows, stale)


def _weighted(metric: str, weights: Iterable[float]) -> Quantity:
    return Quantity("risk_weights", metric, {"risk_weight": list(weights)})


def _noisy(metric: str, sigma: float) -> Quantity:
    return Quantity("shift", metric, {"sigma": sigma})


def _rejected(metric: str, measure: str | list[str] = "total") -> Quantity:
    return Quantity("selective", metric, {"measure": measure})


def _rejects(what: str, method: str, by: str, other: str, margin: float = 0.0) -> Term:
    """Rejection by one measure has a lower AURC than that by another, in points."""
    return Term(what, [(100, method, _rejected("aurc", other)), (-100, method, _rejected("aurc", by))], margin)


def _grows(what: str, method: str, metric: str, low: float, high: float, scale: float = 1, margin: float = 0) -> Term:
    """The metric grows from one sigma to another."""
    return Term(what, [(scale, method, _noisy(metric, high)), (-scale, method, _noisy(metric, low))], margin)


def _penalized(weight: float) -> Quantity:
    return Quantity("l1_weights", "accuracy", {"l1": weight})


def _column(table: str, column: int) -> dict[str, float]:
    """One column of a table of the paper, by method."""
    return {name: row[column] for name, row in getattr(paper, table).items()}


def _against_others(what: str, prices: str, method: str, sign: int) -> Term:
    """A method against the mean of the other methods of the figures, on Cirrhosis."""
    quantity = accuracy(prices, data="cirrhosis")
    others = [name for name in paper.IN_FIGURES if name != method]
    return Term(f"{what}, points:", [(100 * sign, method, quantity), (-100 * sign, others, quantity)])


def _printed(prices: str, method: str) -> tuple[float, float]:
    """What the paper prints for a method on Cirrhosis, and the mean of the others."""
    by_method = printed(prices, "cirrhosis")
    others = [by_method[name] for name in paper.IN_FIGURES if name != method]
    return by_method[method], float(np.mean(others))


def _cart_is_worst() -> Claim:
    """Every selective metric, averaged over the measures as in the paper, is worse than that of each other method."""
    terms, worse = [], []
    for head, sign in SIGNS.items():
        quantity = _rejected(SELECTIVE_COLUMNS[head], OF_THE_PAPER)
        figures = _column("SELECTIVE", list(SELECTIVE_COLUMNS).index(head))
        for other in [name for name in figures if name != "greedy-cart"]:
            what = f"{head}, {method_name('greedy-cart')} and {method_name(other)}:"
            terms.append(Term(what, [(100 * sign, "greedy-cart", quantity), (-100 * sign, other, quantity)]))
            if sign * figures[other] > sign * figures["greedy-cart"]:
                worse.append(f"{method_name(other)} in {head}")
    sentence = "Appendix E: CART is the worst in selective prediction, in every metric"
    return Claim(sentence, terms, agreement(not worse, f"worse: {', '.join(worse)}"))


def _resilience() -> Claim:
    """Points of accuracy that strong noise costs a method trained apart from its policy, more than a joint one."""
    clean, noisy = _noisy("accuracy", 0.0), _noisy("accuracy", 2.0)
    terms = [
        Term(
            f"loss of {method_name(a)} over that of {method_name(b)}, points:",
            [(100, a, clean), (-100, a, noisy), (-100, b, clean), (100, b, noisy)],
        )
        for a, b in product(SEPARATE, JOINT)
    ]
    lost = {
        name: np.mean([line[0][0] - line[-1][0] for (n, _), line in paper.SHIFT.items() if n == name])
        for name in (*JOINT, *SEPARATE)
    }
    agree = max(lost[name] for name in JOINT) < min(lost[name] for name in SEPARATE)
    sentence = "Appendix F: Jointly trained methods (DIME, VIP) lose less to strong noise"
    return Claim(sentence, terms, agreement(agree, f"losses {lost}"))


_KL_REF, _BIASED = Quantity("bias", "mean_kl_ref"), " ".join(paper.BIAS)
_NO_WEIGHT = _weighted("epistemic", [0.0])
_POSITIVE_WEIGHTS = _weighted("epistemic", [weight for weight in RISK_WEIGHTS if weight > 0])
_NEGATIVE_WEIGHTS = _weighted("epistemic", [weight for weight in RISK_WEIGHTS if weight < 0])
_LAST = accuracy("uniform", data="heart", end="max")
_GAP = Quantity("risk_gap", "mean_delta", {"loss": "error"})
_IMPUTED, _ADAPTED = (Quantity("reparametrization", f"mean_abs_delta_{name}") for name in ("imputed", "adapted"))
_SHIFTED = sorted({name for name, _ in paper.SHIFT})
_LOST = max(100 * (line[0][0] - line[k][0]) for line in paper.SHIFT.values() for k in (1, 2))
_VARIANCES = [[entry[2] for entry in line] for line in paper.SHIFT.values() if not np.isnan(line[0][2])]
_VARIANCES_GROW = all(low < high for line in _VARIANCES for low, high in pairwise(line))
_CALMER = [f"{method_name(n)} at {b} %" for (n, b), line in paper.SHIFT.items() if line[0][1] >= line[-1][1]]
_RHO = spearmanr([paper.VARIABLE[name].average for name in paper.BIAS], list(_column("BIAS", 2).values())).statistic
_EQUAL, _EQUAL_OTHERS = _printed("uniform", "greedy-cart")
_RANDOM, _RANDOM_OTHERS = _printed("variable", "greedy-cart")
_CWCF, _CWCF_OTHERS = _printed("uniform", "cwcf")


def _on_subsets(metric: str, data: str | None = None) -> Quantity:
    """A number of RL ReMLP over the random subsets of the study of reparametrization."""
    return Quantity("reparametrization", metric, {"method": "rl-remlp"} | ({"data": data} if data else {}))


def _correlated(method: str, data: str) -> Term:
    """The correlation of variance and risk gap on a table has the sign that the paper prints."""
    printed = paper.RISK_GAP[method, data][0]
    at = {"loss": "error", "measure": "variance", "data": data}
    what = f"{'' if printed > 0 else 'minus '}r of {method_name(method)} on {data_name(data)}"
    return Term(what, [(np.sign(printed), method, Quantity("risk_gap", "pearson", at))])


def _divergence(name: str, data: str) -> Quantity:
    return Quantity("bias", f"mean_kl_{name}", {"data": data})


def _above_the_diagonal(data: str) -> Term:
    """On a table the methods are farther from the model of the subset than from that of all features."""
    methods = list(paper.BIAS)
    what = f"KL to the model of the subset minus KL to the full one, mean over methods, {data_name(data)}"
    return Term(what, [(1, methods, _divergence("ref", data)), (-1, methods, _divergence("full", data))])


def _exactly(what: str, number: Callable[[], float]) -> Callable[[pd.DataFrame], list[Finding]]:
    """A claim about formulas, which needs no rows."""
    return lambda rows: [Finding(what, exact=number())]


def _rare_disease(rows: pd.DataFrame) -> list[Finding]:
    """What epistemic uncertainty loses while entropy rises to its most, whether or not the test settles the doubt."""
    found = []
    for name, settled in illustrations.TESTS.items():
        parts = illustrations.rare_disease_uncertainty(illustrations.RATIOS, settled)
        told = f"nats of epistemic uncertainty lost while entropy rises, where {name}:"
        top = int(parts["entropy"].to_numpy().argmax())
        found.append(Finding(told, exact=float(parts["EU"].iloc[0] - parts["EU"].iloc[top])))
    return found


def _risk_that_grows() -> float:
    by_features = illustrations.risks_by_features()[0]["frozen, mean-imputed"]
    return float(by_features[1] - by_features[0])


def _gap_of_the_rare() -> float:
    rare, even = (illustrations.risk_gaps(share)["gap on B"] for share in (0.99, 0.5))
    return rare - even


FORMULA_CLAIMS = [
    Claim(
        "Section 2.1: Subsets that a policy rarely visits have a larger risk gap",
        _exactly("nats, gap with 1 % of the visits minus that with half of them:", _gap_of_the_rare),
    ),
    Claim("Section 2.3: A test for a rare disease raises entropy while epistemic uncertainty falls", _rare_disease),
    Claim(
        "Section 2.3: The risk of a frozen model can grow with one more feature",
        _exactly("nats of log loss added by the first feature:", _risk_that_grows),
    ),
]
"""Computed from the formulas of the illustrations, without rows."""

STUDY_CLAIMS = [
    Claim(
        "Table 2: Positive lambda lowers epistemic uncertainty",
        [Term("e at 0 minus e above it:", [(1, None, _NO_WEIGHT), (-1, None, _POSITIVE_WEIGHTS)])],
        agreement(paper.LAMBDA["positive"][2] < paper.LAMBDA["zero"][2]),
    ),
    Claim(
        "Table 2: Negative lambda raises epistemic uncertainty",
        [Term("e below 0 minus e at it:", [(1, None, _NEGATIVE_WEIGHTS), (-1, None, _NO_WEIGHT)])],
        agreement(paper.LAMBDA["negative"][2] > paper.LAMBDA["zero"][2]),
    ),
    Claim(
        "Section 4.2: Lambda of 0.1 is more accurate than 0",
        [Term("points", [(100, None, _weighted("accuracy", [0.1])), (-100, None, _weighted("accuracy", [0.0]))])],
    ),
    compared("Table 3: DIME is closest to the model of the subset", _KL_REF, f"{_BIASED} > dime", _column("BIAS", 0)),
    compared("Table 3: Greedy CART is farthest from it", _KL_REF, f"greedy-cart > {_BIASED}", _column("BIAS", 0)),
    compared(
        "Section 4.2: Methods trained by RL lean toward the full model more than DIME does (KL ratio)",
        Quantity("bias", "kl_ratio"),
        f"{BY_RL} > dime",
        _column("BIAS", 2),
    ),
    Claim(
        "Section 4.2: They agree with the full model more than DIME does (KL to it)",
        larger(Quantity("bias", "mean_kl_full"), f"dime > {BY_RL}"),
        agreement(min(_column("BIAS", 1).values()) < paper.BIAS["dime"][1], "DIME is the nearest of all"),
    ),
    Claim(
        "Appendix E: Entropy rejects better than aleatoric, epistemic uncertainty or variance (AURC)",
        [
            _rejects(f"{method_name(name)}, {other.replace('_', ' ')}:", name, "total", other)
            for name, other in product(WITH_MEMBERS, ("aleatoric", "mutual_information", "variance"))
        ],
    ),
    compared(
        "Appendix E: VIP has the lowest AURC",
        _rejected("aurc"),
        f"{' '.join(paper.SELECTIVE)} > vip",
        _column("SELECTIVE", 0),
        scale=100,
    ),
    compared(
        "Appendix E: Reparametrization helps to find failures (AUROC)",
        _rejected("auroc"),
        "rl-remlp > rl-mlp",
        _column("SELECTIVE", 2),
        scale=100,
    ),
    Claim(
        "Appendix F: Noise of up to 0.2 costs less than 4 points of accuracy",
        [_grows(f"{method_name(m)}, 4 minus the loss:", m, "accuracy", 0, 0.2, 100, 4) for m in _SHIFTED],
        agreement(_LOST < 4, f"{_LOST:.0f}"),
    ),
    Claim(
        "Appendix F: Ensemble variance grows with every step of the noise",
        [
            _grows(f"{method_name(name)}, {low:g} to {high:g}:", name, "variance", low, high)
            for name, (low, high) in product(SEPARATE, pairwise(paper.SHIFT_SIGMAS))
        ],
        agreement(_VARIANCES_GROW, "one step shows no change in print"),
    ),
    Claim(
        "Appendix F: The calibration error of every method grows with the noise (0 to 2)",
        [_grows(f"{method_name(m)}:", m, "ece", 0, 2) for m in _SHIFTED],
        agreement(not _CALMER, ", ".join(_CALMER)),
    ),
    Claim(
        "Appendix F: For greedy CART ensemble variance finds the subsets with a large risk gap",
        [
            Term(
                "Pearson's r",
                [(1, "greedy-cart", Quantity("risk_gap", "pearson", {"loss": "error", "measure": "variance"}))],
            )
        ],
        agreement(sum(r for (name, _), (r, _) in paper.RISK_GAP.items() if name == "greedy-cart") > 0),
    ),
    Claim(
        "Appendix F: For RL ReMLP there is hardly any gap (between -0.02 and 0.02)",
        [Term(f"0.02 {word} the gap", [(sign, "rl-remlp", _GAP)], 0.02) for word, sign in (("minus", -1), ("plus", 1))],
    ),
    Claim(
        "Appendix F: Reparametrization narrows the risk gap",
        [Term("|gap|:", [(1, "rl-remlp", _IMPUTED), (-1, "rl-remlp", _ADAPTED)])],
        agreement(paper.REPARAMETRIZATION["all"][3] < paper.REPARAMETRIZATION["all"][2]),
    ),
    Claim(
        "Appendix F: Cases of high aleatoric uncertainty have low epistemic uncertainty",
        [Term("minus Spearman's rho, mean over methods", [(-1, None, Quantity("scatter", "spearman"))])],
    ),
    Claim(
        "Section 4.2: The choices of ReMLP gain 2 to 5 points over random ones",
        [
            gain(f"{method_name(name)}, {what}", name, margin, sign)
            for name in BOTH_REMLP
            for what, margin, sign in (("gain minus 2:", -2, 1), ("5 minus the gain:", 5, -1))
        ],
    ),
    Claim("Section 4.2: Lambda of 0.1 gains 0.9 % over 0 (relative)", evidence.relative_gain),
    Claim(
        "Section 4.2: Stronger methods are farther from local models (KL ratio)",
        evidence.farther_when_stronger,
        agreement(_RHO > 0, f"rank correlation {_RHO:.2f}"),
    ),
    Claim(
        "Appendix E: On Heart accuracy is not monotone (equal prices)",
        evidence.most_lost("uniform", paper.IN_FIGURES, "heart"),
    ),
    Claim("Appendix E: On Heart neural methods end alike (within 5 points, equal prices)", evidence.neural_end_alike),
    Claim(
        "Appendix E: On Heart CART ends below the neural methods",
        [
            Term(
                f"{method_name(name)} over greedy CART, all features",
                [(100, name, _LAST), (-100, "greedy-cart", _LAST)],
            )
            for name in evidence.NEURAL
        ],
    ),
    Claim("Appendix E: On Heart ECE is lower at larger budgets", evidence.calibration_improves),
    Claim(
        "Appendix E: On Cirrhosis greedy CART is good under equal prices and lags under random ones",
        [
            _against_others("greedy CART over the others, equal prices", "uniform", "greedy-cart", 1),
            _against_others("greedy CART under them, random", "variable", "greedy-cart", -1),
        ],
        agreement(
            _EQUAL > _EQUAL_OTHERS and _RANDOM < _RANDOM_OTHERS,
            f"{_EQUAL} under equal prices, the others {_EQUAL_OTHERS:.1f}",
        ),
    ),
    Claim(
        "Appendix E: On Cirrhosis CWCF is unusually poor under equal prices",
        [_against_others(f"the others over {method_name('cwcf')}", "uniform", "cwcf", -1)],
        agreement(_CWCF < _CWCF_OTHERS, f"{_CWCF}, the others {_CWCF_OTHERS:.1f}"),
    ),
    Claim("Appendix E: On Yeast DIME and CWCF end 10 points apart", evidence.ten_points_apart),
    _cart_is_worst(),
    Claim(
        "Appendix E: Rejection by variance is close to that by EU (AURC within a point)",
        [
            _rejects(f"{method_name(name)}, 1 minus the difference:", name, *measures, 1.0)
            for name, measures in product(WITH_MEMBERS, permutations(("variance", "mutual_information"), 2))
        ],
    ),
    _resilience(),
    compared(
        "Appendix E: VIP has the lowest AURC, averaged over the measures",
        _rejected("aurc", OF_THE_PAPER),
        f"{' '.join(paper.SELECTIVE)} > vip",
        _column("SELECTIVE", 0),
        scale=100,
    ),
    compared(
        "Appendix E: VIP has the highest AUROC, averaged over the measures",
        _rejected("auroc", OF_THE_PAPER),
        f"vip > {' '.join(paper.SELECTIVE)}",
        _column("SELECTIVE", 2),
        scale=100,
    ),
    Claim(
        "Appendix F: Reparametrization saves 0.66 points of test error on random subsets",
        [Term("points saved minus 0.66:", [(100, None, _on_subsets("error_saved"))], -0.66)],
    ),
    Claim(
        "Appendix F: It lowers the error on more subsets than it raises it",
        [
            Term(
                "share of subsets with a lower error minus that with a higher one:",
                [(1, None, _on_subsets("lower_error")), (-1, None, _on_subsets("higher_error"))],
            )
        ],
        agreement(paper.REPARAMETRIZED_ERRORS["all"][1] > paper.REPARAMETRIZED_ERRORS["all"][2]),
    ),
    Claim(
        "Appendix F: It narrows the gap significantly on Wine and on Heart",
        [
            Term(
                f"|gap| of MLP minus that of ReMLP, {data_name(data)}",
                [
                    (1, None, _on_subsets("mean_abs_delta_imputed", data)),
                    (-1, None, _on_subsets("mean_abs_delta_adapted", data)),
                ],
            )
            for data in ("wine", "heart")
        ],
        agreement(all(paper.REPARAMETRIZATION[data][5] < 0.05 for data in ("wine", "heart"))),
    ),
    Claim(
        "Appendix F: On Cirrhosis and Yeast it does not change the gap (by less than 0.01)",
        [
            Term(
                f"0.01 minus what |gap| {word}, {data_name(data)}",
                [
                    (-sign, None, _on_subsets("mean_abs_delta_imputed", data)),
                    (sign, None, _on_subsets("mean_abs_delta_adapted", data)),
                ],
                0.01,
            )
            for data in ("cirrhosis", "yeast")
            for word, sign in (("loses", 1), ("gains", -1))
        ],
        agreement(all(paper.REPARAMETRIZATION[data][5] > 0.05 for data in ("cirrhosis", "yeast"))),
    ),
    *(
        Claim(
            f"Appendix F: Variance and risk gap of {method_name(method)} are correlated as printed, table by table",
            [_correlated(method, data) for name, data in paper.RISK_GAP if name == method],
        )
        for method in ("greedy-cart", "rl-remlp")
    ),
    Claim(
        "Appendix F: Entropy grows with the noise (0 to 2)",
        [_grows(f"{method_name(m)}, nats:", m, "entropy", 0, 2) for m in _SHIFTED],
    ),
    Claim(
        "Appendix F: Entropy finds wrong predictions better under strong noise (AUROC, 0 to 2)",
        [
            Term(
                f"{method_name(m)}, points:",
                [
                    (sign * 100, m, Quantity("shift", "auroc", {"sigma": sigma, "measure": "total"}))
                    for sign, sigma in ((1, 2.0), (-1, 0.0))
                ],
            )
            for m in _SHIFTED
        ],
    ),
    Claim(
        "Appendix E: On Wine and Cirrhosis most methods lie above the diagonal (nearer to the full model)",
        [_above_the_diagonal(data) for data in ("wine", "cirrhosis")],
    ),
    Claim(
        "Appendix E: On Diabetes all are near both references (below 0.1 nats)",
        [
            Term(
                f"0.1 minus KL {name}, mean over methods",
                [(-1, list(paper.BIAS), _divergence(name, "diabetes130"))],
                0.1,
            )
            for name in ("ref", "full")
        ],
    ),
    Claim(
        "Appendix E: DIME lies below the diagonal or near it (by 0.02 nats) on every table",
        [
            Term(
                f"KL to the full model minus KL to that of the subset, plus 0.02, {data_name(data)}",
                [(1, "dime", _divergence("full", data)), (-1, "dime", _divergence("ref", data))],
                0.02,
            )
            for data in paper.DATA
        ],
    ),
    Claim(
        "Appendix E: On Wine and Yeast greedy CART is far from both references (farther than the others)",
        [
            Term(
                f"KL {name} of greedy CART over the others, {data_name(data)}",
                [
                    (1, "greedy-cart", _divergence(name, data)),
                    (-1, [other for other in paper.BIAS if other != "greedy-cart"], _divergence(name, data)),
                ],
            )
            for data in ("wine", "yeast")
            for name in ("ref", "full")
        ],
    ),
    Claim(
        "Appendix G: The paper's L1 weight of 0.1 costs no accuracy against none (a point)",
        [Term("1 minus the points lost:", [(-100, None, _penalized(0.0)), (100, None, _penalized(0.1))], 1.0)],
    ),
]
CLAIMS = [
    *FORMULA_CLAIMS,
    *ACCURACY_CLAIMS,
    *STUDY_CLAIMS,
    *IMAGE_CLAIMS,
    Claim(
        "beyond the paper: L1 weights small enough to leave the network something (1e-4, 1e-5) beat the paper's 0.1",
        [
            Term(f"points of {weight:g} over 0.1", [(100, None, _penalized(weight)), (-100, None, _penalized(0.1))])
            for weight in (1e-4, 1e-5)
        ],
    ),
    Claim(
        "beyond the paper: The default of this library beats RL ReMLP, VIP and the best fixed subset",
        larger(accuracy("variable"), "askwise > rl-remlp vip static-best", 100),
    ),
]
