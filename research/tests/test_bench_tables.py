"""Tables and claims recomputed by hand from the rows they come from."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import askwise_bench
from askwise.errors import InvalidInput
from askwise.metrics import calibration_surplus, expected_calibration_error
from askwise_bench.grid.methods import METHODS
from askwise_bench.grid.store import COLUMNS
from askwise_bench.grid.suites import SUITES
from askwise_bench.grid.tasks import Limits, make_task
from askwise_bench.paper import paper_results
from askwise_bench.paper.accuracy_claims import accuracy, better
from askwise_bench.paper.claims import Claim, Term, judged, larger
from askwise_bench.paper.findings import EQUAL, FAILS, HOLDS, NOT_MEASURED, UNDECIDED, Finding
from askwise_bench.paper.paper_claims import CLAIMS, FORMULA_CLAIMS, verdicts
from askwise_bench.report.rows import (
    Quantity,
    curves,
    method_name,
    pooled_calibration_error,
    read_rows,
    settings,
)
from askwise_bench.report.study_tables import study_tables, tables
from askwise_bench.report.tables import accuracy_tables, mean_ranks, over_budgets_and_seeds
from askwise_bench.studies.accuracy import summary
from askwise_bench.studies.subsets import compare_gaps

BENCH = Path(askwise_bench.__file__).parent


def as_rows(lines):
    """Rows of (data, method, prices, seed, study, metric, value) and a dict of parameters, which may be left out."""
    named = [{**dict(zip(KEYS, line[:7], strict=True)), **(line[7] if len(line) > 7 else {})} for line in lines]
    return pd.DataFrame(named, columns=list(COLUMNS)).astype({"metric": "category"})


KEYS = ("data", "method", "prices", "seed", "study", "metric", "value")


def accuracy_rows(values, prices="uniform", metric="accuracy"):
    """Rows of {(data, method, seed): accuracies by level}; money differs from seed to seed."""
    return [
        (data, method, prices, seed, "accuracy", metric, value, {"budget": (k + 1) * (1.0 + seed)})
        for (data, method, seed), line in values.items()
        for k, value in enumerate(line)
    ]


HAND = {
    ("wine", "greedy-cart", 0): [0.5, 0.7, 0.9],
    ("wine", "greedy-cart", 1): [0.7, 0.7, 1.0],
    ("wine", "static-cmi", 0): [0.4, 0.6, 0.8],
    ("wine", "static-cmi", 1): [0.5, 0.6, 0.7],
    ("heart", "greedy-cart", 0): [0.6, 0.6, 0.6],
    ("heart", "greedy-cart", 1): [0.6, 0.6, 0.6],
    ("heart", "static-cmi", 0): [0.7, 0.8, 0.9],
    ("heart", "static-cmi", 1): [0.7, 0.8, 0.9],
    ("wine", "askwise", 0): [0.9, 0.9, 0.9],
}


def line_of(table, name):
    (line,) = [line for line in table.body if line[0].text == name]
    return dict(zip(table.head, line, strict=True))


def test_levels_are_the_order_of_the_budgets():
    by_level = curves(as_rows(accuracy_rows(HAND)), "accuracy", "uniform")
    assert by_level.T.to_dict()["wine", "greedy-cart", 1] == {1: 0.7, 2: 0.7, 3: 1.0}


def test_both_spreads_by_hand():
    found = over_budgets_and_seeds(curves(as_rows(accuracy_rows(HAND)), "accuracy", "uniform")).T.to_dict()
    row = found["wine", "greedy-cart"]
    assert row["mean"] == pytest.approx((0.7 + 0.8) / 2)
    assert row["over_budgets"] == pytest.approx(np.std([0.6, 0.7, 0.95], ddof=1))
    assert row["over_seeds"] == pytest.approx(np.std([0.7, 0.8], ddof=1))
    assert np.isnan(found["wine", "askwise"]["over_seeds"])


def test_accuracy_table_shows_ours_beside_the_printed():
    (table,) = accuracy_tables(as_rows(accuracy_rows(HAND)))
    cart = line_of(table, "Greedy CART*")
    assert (cart["Wine"].text, cart["Wine"].spread) == ("75.00", "± 18.03 / 7.07")
    assert cart["Wine"].paper == "92.28 ± 13.01"
    assert cart["average"].text == "67.50"
    assert cart["average"].paper == f"{(68.85 + 92.28) / 2:.2f}"
    static = line_of(table, "Static CMI")
    assert static["average"].text == "70.00"
    assert static["average"].best
    assert (static["rank"].text, cart["rank"].text) == ("1.5", "1.5")
    assert (static["rank among the paper's"].paper, cart["rank among the paper's"].paper) == ("1.0", "2.0")
    assert "1 to 2 seeds" in table.note


def test_a_method_without_all_of_the_data_has_no_average():
    (table,) = accuracy_tables(as_rows(accuracy_rows(HAND)))
    ours = line_of(table, "askwise")
    assert (ours["Wine"].text, ours["Heart"].text, ours["average"].text, ours["rank"].text) == ("90.00", "-", "-", "-")
    assert table.body[-1][0].text == "askwise"


def test_averages_are_over_the_data_that_the_widely_measured_methods_share():
    values = {
        (data, method, 0): [0.1 * (k + 1) + 0.01 * (method == "vip")]
        for method in ("vip", "dime", "cwcf")
        for k, data in enumerate(("cirrhosis", "heart", "wine"))
        if (method, data) != ("dime", "cirrhosis") and (method, data) not in {("cwcf", "heart"), ("cwcf", "wine")}
    }
    (table,) = accuracy_tables(as_rows(accuracy_rows(values)))
    lines = {name: line_of(table, name) for name in ("VIP", "DIME", "CWCF")}
    assert [lines[name]["average"].text for name in lines] == ["26.00", "25.00", "-"]
    assert [lines[name]["rank"].text for name in lines] == ["1.0", "2.0", "-"]
    assert "more than half of them have: Heart, Wine." in table.note


def test_a_figure_of_fewer_seeds_says_so_and_is_not_called_the_best():
    (table,) = accuracy_tables(as_rows(accuracy_rows(HAND)))
    ours = line_of(table, "askwise")["Wine"]
    assert ours.spread.endswith(", 1 seed")
    assert not ours.best
    assert "rest on fewer splits" in table.note
    same = {key: line for key, line in HAND.items() if key[2] == 0}
    (table,) = accuracy_tables(as_rows(accuracy_rows(same)))
    assert line_of(table, "askwise")["Wine"].best
    assert "fewer" not in table.note


def test_other_data_has_a_table_of_its_own():
    rows = as_rows(accuracy_rows({**HAND, ("switch", "askwise", 0): [0.5, 0.6]}))
    ours, other = accuracy_tables(rows)
    assert "switch" not in ours.head
    assert other.head == ("method", "switch", "rank")
    assert other.label == "beyond the paper"


def test_pooled_calibration_error_is_that_of_all_rows_together():
    rng = np.random.default_rng(0)
    lines: list[Any] = []
    together: dict[int, list[Any]] = {1: [], 2: []}
    for seed, n in enumerate((30, 50)):
        trial = ("wine", "vip", "uniform", seed, "accuracy")
        lines.append((*trial, "test_rows", n))
        for level in (1, 2):
            proba, y = rng.dirichlet([1, 1, 1], n), rng.integers(0, 3, n)
            together[level].append((y, proba))
            budget = level * (seed + 1.5)
            lines.append((*trial, "accuracy", 0.5, {"budget": budget}))
            surplus = calibration_surplus(y, proba)
            lines += [(*trial, "surplus", v, {"budget": budget, "bin": k}) for k, v in enumerate(surplus) if v]
    pooled = pooled_calibration_error(as_rows(lines), "uniform").T.to_dict()
    for level, parts in together.items():
        y, proba = (np.concatenate(part) for part in zip(*parts, strict=True))
        assert pooled["wine", "vip"][level] == pytest.approx(expected_calibration_error(y, proba))


def test_ranks_by_hand():
    scores = pd.DataFrame({"a": [3.0, 2.0, 2.0, 9.0], "b": [1.0, 2.0, 3.0, np.nan]}, index=list("wxyz"))
    assert mean_ranks(scores).to_dict() == {"w": 2.0, "x": 2.25, "y": 1.75}


def test_printed_tables_agree_with_their_own_last_column():
    """A slip in one of the 70 means would show in the average or in the ranks."""
    for prices in ("variable", "uniform"):
        printed = paper_results.ACCURACIES[prices]
        assert set(printed) == set(paper_results.METHODS) <= set(METHODS)
        means = pd.DataFrame({name: {k: v[0] for k, v in row.by_data.items()} for name, row in printed.items()}).T
        average, ranks = means.mean(axis=1), mean_ranks(means)
        for name, row in printed.items():
            assert average[name] == pytest.approx(row.average, abs=0.011)
            assert ranks[name] == pytest.approx(row.rank, abs=0.11)  # ties are ours to share


def test_printed_correlations_agree_with_their_average():
    for method, average in (("greedy-cart", (0.39, 0.39)), ("rl-remlp", (0.15, 0.17))):
        cells = [value for (name, _), value in paper_results.RISK_GAP.items() if name == method]
        assert np.mean(cells, axis=0) == pytest.approx(average, abs=0.006)


def test_rows_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"rows\.csv cannot be read"):
        read_rows(tmp_path)
    (tmp_path / "rows.csv").write_text("data,value\nwine,1\n")
    with pytest.raises(InvalidInput, match="must have the columns"):
        read_rows(tmp_path)


def test_a_number_measured_by_two_suites_counts_once(tmp_path):
    as_rows(2 * [("wine", "vip", "uniform", 0, "accuracy", "accuracy", 0.5, {"budget": 1.0})]).to_csv(
        tmp_path / "rows.csv", index=False
    )
    assert len(read_rows(tmp_path)) == 1


def study_rows():
    """A few lines of every study, two seeds, two data sets."""
    rng = np.random.default_rng(1)
    lines: list[Any] = []
    for seed in (0, 1):
        for data in ("wine", "heart"):
            trial = (data, "greedy-remlp", "uniform", seed)
            for weight in (-1, -0.5, 0, 0.5, 1):
                for budget in (2.0, 4.0):
                    at = {"budget": budget, "risk_weight": weight}
                    lines.append((*trial, "risk_weights", "accuracy", 0.7 + 0.01 * weight + 0.02 * seed, at))
                    lines.append((*trial, "risk_weights", "epistemic", 0.1 - 0.05 * weight, at))
            for k in range(6):
                errors = rng.uniform(0.1, 0.4, 3)
                for name, error in zip(("imputed", "adapted", "local"), errors, strict=True):
                    at = {"subset_size": 3, "subset": k}
                    lines.append((*trial, "reparametrization", f"error_{name}", error, at))
            for sigma in (0, 0.1):
                for k, budget in enumerate((3.9, 9.1)):
                    at = {"budget": budget, "sigma": sigma}
                    lines.append((*trial, "shift", "accuracy", 0.8 - sigma + 0.1 * k, at))
                    lines.append((*trial, "shift", "ece", 0.1 + sigma, at))
            lines.append((*trial, "bias", "mean_kl_ref", 0.2 + 0.1 * seed + (data == "wine")))
            lines.append((*trial, "bias", "kl_ref", 99.0, {"subset": 0, "subset_size": 3}))
            lines.append((*trial, "risk_gap", "mean_delta", 0.01, {"loss": "error"}))
            lines.append((*trial, "risk_gap", "mean_delta", 99.0, {"loss": "log_loss"}))
            lines.append((*trial, "risk_gap", "pearson", 0.3 + 0.2 * seed, {"loss": "error", "measure": "variance"}))
            lines.append((*trial, "l1_weights", "accuracy", 0.9, {"budget": 5.0, "l1": 0.001}))
            lines.append((*trial, "unavailable", "accuracy", 0.6, {"budget": 5.0, "unavailable_share": 0.3}))
    lines.append(("wine", "vip", "uniform", 0, "bias", "mean_kl_ref", 0.5))
    return as_rows(lines)


def table_called(found, title):
    (table,) = [table for table in found if table.title == title]
    return table


def test_lambda_is_put_together_by_sign():
    table = table_called(study_tables(study_rows()), "Weight of epistemic uncertainty")
    positive = line_of(table, "lambda positive")
    assert positive["accuracy"].text == "71.75"  # 70 + mean(0.5, 1) + mean(0, 2) points
    assert positive["accuracy"].spread == f"± {np.std([0, 2], ddof=1):.2f}"
    assert positive["accuracy"].paper == "66.60 ± 4.41"
    assert positive["epistemic"].text == "0.0625"
    assert line_of(table, "lambda = -0.5")["accuracy"].paper == ""


def test_reparametrization_pools_the_subsets_of_all_seeds():
    rows = study_rows()
    table = table_called(study_tables(rows), "Reparametrization and risk gap")
    wine = rows[rows["data"] == "wine"]
    by_hand = {
        name: wine[wine["metric"] == f"error_{name}"].sort_values(["seed", "subset"])["value"]
        for name in ("imputed", "adapted", "local")
    }
    gaps = compare_gaps(*(values.to_numpy() for values in by_hand.values()))
    line = line_of(table, "Greedy ReMLP*, Wine (12 subsets)")
    assert line["|gap|, adapted"].text == f"{gaps['mean_abs_delta_adapted']:.3f}"
    assert line["wins, %"].text == f"{100 * gaps['wins']:.1f}"
    assert line["Wilcoxon p"].text == f"{gaps['wilcoxon_p_abs_delta']:.3f}"
    assert line["Wilcoxon p"].paper == "0.008"
    assert line_of(table, "Greedy ReMLP*, all (24 subsets)")


def test_shift_bias_and_the_others():
    found = study_tables(study_rows())
    shift = line_of(table_called(found, "Distribution shift of the test rows"), "Greedy ReMLP*, 70 %")
    assert shift["sigma 0.1"].text == "0.80 · 0.20 · -"
    bias = table_called(found, "Prediction bias")
    assert line_of(bias, "Greedy ReMLP*")["KL ref"].text == "0.750"
    assert line_of(bias, "Greedy ReMLP*")["KL ref"].spread == f"± {np.std([0.7, 0.8], ddof=1):.3f}"
    assert line_of(bias, "VIP (1 of 2 data)")["KL ref"].paper == "0.393"
    assert line_of(bias, "VIP (1 of 2 data)")["ratio"].text == "-"
    gap = line_of(table_called(found, "Epistemic uncertainty and risk gap"), "Greedy ReMLP*, Heart")
    assert (gap["r, variance"].text, gap["rho, variance"].text) == ("0.400", "-")
    assert table_called(found, "Regularization of the value network").head == ("method", "L1 0.001")
    assert table_called(found, "Unavailable features").head == ("method", "30 % unavailable")
    assert all(table.note.endswith("Equal prices.") for table in found)


def test_a_quantity_is_chosen_by_its_parameters():
    trial = ("wine", "vip", "uniform", 0)
    rows = as_rows([(*trial, "risk_weights", "accuracy", w / 2, {"risk_weight": w}) for w in (1, -0.5, 0.001)])
    assert settings(rows, "risk_weights", "risk_weight") == [-0.5, 0.001, 1.0]
    assert settings(rows, "l1_weights", "l1") == []
    for at, expected in (({"risk_weight": 1}, [0.5]), ({"risk_weight": [1, -0.5]}, [0.5, -0.25])):
        assert Quantity("risk_weights", "accuracy", at).of(rows)["value"].tolist() == expected
    assert Quantity("shift", "accuracy").of(rows).empty


def test_tables_and_claims_name_studies_of_the_suites():
    """A study is found by its name: one that is misspelled would leave its table out."""
    sources = [path.read_text() for room in ("report", "paper") for path in (BENCH / room).glob("*.py")]
    named = {
        name for text in sources for name in re.findall(r'(?:Quantity|settings|_methods_of)\((?:rows, )?"(\w+)"', text)
    }
    assert named == {suite.study.__name__ for suite in SUITES.values()}


def test_methods_that_see_everything_are_marked():
    assert method_name("invase") == "INVASE†"
    assert method_name("dime") == "DIME"
    assert method_name("askwise") == "askwise"


def test_data_are_described():
    task = make_task("wine", "uniform", 0, Limits(2000, 500))
    found = {row.metric: row.value for row in summary(task)}
    assert (found["rows"], found["features"], found["classes"]) == (178, 13, 3)
    assert found["training_rows"] + found["test_rows"] == 178
    assert found["logistic_accuracy"] > 0.9
    rows = as_rows([("wine", "static-cmi", "uniform", 0, "summary", name, value) for name, value in found.items()])
    line = line_of(table_called(tables(rows), "Data"), "Wine")
    assert (line["rows"].text, line["rows"].paper) == ("178", "178")
    assert line["logistic regression"].text == f"{found['logistic_accuracy']:.3f}"


def test_made_data_are_described_by_what_was_made():
    found = {row.metric: row.value for row in summary(make_task("switch", "uniform", 0, Limits(2000, 500)))}
    assert found["rows"] == found["training_rows"] + found["test_rows"] == 1500


def finding(*samples):
    return Finding("x", {"wine": np.array(samples, dtype=float)} if samples else {})


def test_the_interval_is_that_of_the_t_test_made_wider_for_splits_that_share_rows():
    samples = np.array([0.1, 0.5, 0.3, 0.4])
    test = stats.ttest_1samp(samples, 0)
    for found, ratio, level in (
        (finding(*samples).interval(), 20 / 80, 0.95),
        (finding(*samples).interval(4), 20 / 80, 1 - 0.05 / 4),
        (Finding("x", {"mnist": samples}, ratios={"mnist": 0.1}).interval(), 0.1, 0.95),
    ):
        wider = np.sqrt((1 / 4 + ratio) * 4)
        half = (test.confidence_interval(level).high - test.confidence_interval(level).low) / 2
        assert found == pytest.approx((0.325 - wider * half, 0.325 + wider * half))


def test_verdicts():
    for findings, verdict in [
        ([finding(1, 1.1, 0.9)], HOLDS),
        ([finding(-1, -1.1, -0.9)], FAILS),
        ([finding(1, -1, 0.9)], UNDECIDED),
        ([finding(1, 1)], UNDECIDED),
        ([finding(1, 1.1, 0.9), finding(-1, -1.1, -0.9)], FAILS),
        ([finding(1, 1.1, 0.9), finding()], UNDECIDED),
        ([finding()], NOT_MEASURED),
        ([finding(-1, -2.2, -1.5)], UNDECIDED),  # p = 0.046, were the splits independent
        ([finding(-1, -1.8, -1.4)], FAILS),
        ([finding(-1, -1.8, -1.4), finding(1, 1.1, 0.9)], UNDECIDED),  # one of two may be so by chance
    ]:
        assert judged(Claim("w: c", lambda rows: []), findings).verdict == verdict


def test_a_comparison_is_paired_by_data_and_seed():
    values = {
        (data, method, seed): [0.5 + 0.1 * (data == "wine") + 0.05 * seed + gain]
        for data in ("wine", "heart")
        for seed in range(3)
        for method, gain in (("vip", 0.02 + 0.001 * seed), ("dime", 0.0))
    }
    values["wine", "vip", 3] = [0.9]  # a seed without its partner is left out
    rows = as_rows(accuracy_rows(values, "variable"))
    found = larger(accuracy("variable"), "vip > dime", 100)[0].find(rows)
    for data in ("heart", "wine"):
        assert found.samples[data] == pytest.approx([2.0, 2.1, 2.2])
    missing = larger(accuracy("variable"), "vip > cwcf", 100)[0].find(rows)
    assert missing.verdict() == NOT_MEASURED


def test_terms_have_a_margin_and_a_scale():
    lines = [
        ("wine", "vip", "uniform", seed, "shift", "accuracy", value, {"budget": 1.0, "sigma": sigma})
        for seed in range(2)
        for sigma, value in ((0.2, 0.7), (0.0, 0.73 + 0.02 * seed))
    ]
    noisy, clean = (Quantity("shift", "accuracy", {"sigma": sigma}) for sigma in (0.2, 0))
    term = Term("x", [(100, "vip", noisy), (-100, "vip", clean)], 4)
    assert term.find(as_rows(lines)).samples["wine"] == pytest.approx([1.0, -1.0])


def test_what_the_paper_prints_is_checked_too():
    assert better("variable", "w: c", "rl-remlp > vip").printed == "agree"
    against = better("variable", "w: c", "greedy-cart > invase").printed
    assert against.startswith("contradict: Greedy CART* 62.4 and INVASE")


def test_every_claim_can_be_judged_without_its_rows():
    found = verdicts(as_rows(accuracy_rows({("switch", "eddi", 0): [0.5]})))
    formulas = {claim.text for claim in FORMULA_CLAIMS}
    assert {verdict.verdict for verdict in found if verdict.claim not in formulas} == {NOT_MEASURED}
    assert {verdict.verdict for verdict in found if verdict.claim in formulas} == {HOLDS, FAILS}
    assert len(found) == len(CLAIMS)
    assert len({verdict.claim for verdict in found}) == len({(v.claim, v.where) for v in found})


def test_claims_follow_the_rows():
    """Where the default gains 3 points over the others in every seed the claim holds; where it loses them it fails."""
    for sign, verdict in ((1, HOLDS), (-1, FAILS)):
        values = {
            ("wine", name, seed): [0.6 + 0.001 * (seed * len(name) % 3) + 0.03 * sign * (name == "askwise")]
            for name in ("askwise", "rl-remlp", "vip", "static-best")
            for seed in range(4)
        }
        found = verdicts(as_rows(accuracy_rows(values, "variable")))
        assert found[-1].verdict == verdict
        assert "Seeds: Wine 4." in found[-1].number


def test_entropy_and_monotony_by_hand():
    lines = []
    for seed in range(3):
        base = {("wine", "vip", seed): [0.9, 0.5, 0.4 - 0.01 * seed]}
        lines += accuracy_rows(base, "variable", "entropy") + accuracy_rows(base, "variable", "random_entropy")
        lines += accuracy_rows({("wine", "vip", seed): [0.5, 0.4 - 0.001 * seed, 0.7]}, "variable")
    found = {verdict.claim: verdict for verdict in verdicts(as_rows(lines))}
    assert found["Entropy falls with the budget, by own and by random choices"].verdict == HOLDS
    assert "+0.51 " in found["Entropy falls with the budget, by own and by random choices"].number
    fall = found["More budget can mean less accuracy"]
    assert fall.verdict == HOLDS
    assert "points lost by the step that lost most on the other seeds: +10.1 " in fall.number


def verdict_of(text, rows):
    """Of one claim; all of them take long."""
    (claim,) = [claim for claim in CLAIMS if claim.text == text]
    return judged(claim, claim.look(rows))


NOT_MONOTONE = "More budget can mean less accuracy"


def noisy_curves(rng, n_seeds, slope=0.02):
    return {
        (data, name, seed): (0.5 + slope * np.arange(10) + 0.05 * rng.normal(size=10)).tolist()
        for data in ("wine", "heart")
        for name in ("vip", "dime", "rl-remlp", "cwcf")
        for seed in range(n_seeds)
    }


def test_the_largest_of_many_falls_by_chance_proves_nothing():
    """Curves that rise, with noise: the largest of 36 falls is 8 points, and it is not there on the other seeds."""
    for seed in range(5):
        values = noisy_curves(np.random.default_rng(seed), 5)
        found = verdict_of(NOT_MONOTONE, as_rows(accuracy_rows(values, "variable")))
        assert found.verdict in (UNDECIDED, FAILS)


def test_a_fall_that_is_there_is_found_and_one_that_is_not_is_refuted():
    values = noisy_curves(np.random.default_rng(0), 6)
    for (_, name, _), line in values.items():
        line[6] -= 0.25 * (name == "vip")
    rows = as_rows(accuracy_rows(values, "variable"))
    assert verdict_of(NOT_MONOTONE, rows).verdict == HOLDS
    steep = noisy_curves(np.random.default_rng(0), 6, slope=0.5)
    rows = as_rows(accuracy_rows(steep, "variable"))
    assert verdict_of(NOT_MONOTONE, rows).verdict == FAILS


def test_a_method_that_beats_half_of_the_others_is_above_their_median():
    claim = "Static CMI beats half of the dynamic methods, six of twelve"
    others = ("vip", "dime", "cwcf", "invase", "rl-mlp")
    for lead, verdict in ((0.03, HOLDS), (-0.03, FAILS), (0.001, EQUAL)):
        values = {
            ("wine", name, seed): [0.6 + 0.02 * k + 0.002 * seed * (name == "dime")]
            for k, name in enumerate(others)
            for seed in range(4)
        }
        values |= {("wine", "static-cmi", seed): [0.64 + lead + 0.002 * (-1) ** seed] for seed in range(4)}
        found = verdict_of(claim, as_rows(accuracy_rows(values, "uniform")))
        assert found.verdict == verdict
    same = {key: [0.5 if key[1] != "static-cmi" else 0.9] for key in values}
    found = verdict_of(claim, as_rows(accuracy_rows(same, "uniform")))
    assert found.verdict == UNDECIDED
    assert "all seeds agree to the last digit" in found.still_open


def test_metrics_are_paired_at_the_budgets_that_both_have():
    lines = [
        ("wine", method, "variable", 0, "selective", "auroc", value, {"budget": budget, "measure": "total"})
        for method, values in {"rl-remlp": {1: 0.6, 2: 0.9}, "rl-mlp": {1: 0.5}}.items()
        for budget, value in values.items()
    ]
    found = {verdict.claim: verdict for verdict in verdicts(as_rows(lines))}
    assert "RL MLP* +10 (1 seed)" in found["Reparametrization helps to find failures (AUROC)"].number


def test_equal_means_share_a_rank():
    scores = pd.DataFrame({"wine": {"a": 0.1 + 0.2, "b": 0.3, "c": 0.2}})
    assert mean_ranks(scores).to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
