"""The paper's own settings in the benchmarks, and what its sections say without measuring it."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from askwise.errors import InvalidInput
from askwise.predict import MaskTrainedPredictor, ReparametrizedPredictor, RulePredictor
from askwise.reference_models import make_model
from askwise_bench.cli import app
from askwise_bench.grid.methods import METHODS, Method, fit_method
from askwise_bench.grid.run import PROFILES, Grid, run
from askwise_bench.grid.store import COLUMNS
from askwise_bench.grid.tasks import PAPERS, Limits, make_task
from askwise_bench.paper.findings import FAILS, HOLDS
from askwise_bench.paper.paper_claims import CLAIMS, verdicts
from askwise_bench.report.illustrations import ILLUSTRATIONS, rare_disease_uncertainty, risk_gaps, risks_by_features
from askwise_bench.report.report import make_page
from askwise_bench.report.study_tables import study_tables
from askwise_bench.studies import subsets


def small(settings=PAPERS):
    return make_task("wine", "uniform", 0, Limits(60, 20), settings)


def as_rows(lines):
    """Rows of (data, method, prices, seed, study, metric, value, parameters)."""
    keys = ("data", "method", "prices", "seed", "study", "metric", "value")
    named = [{**dict(zip(keys, line[:7], strict=True)), **line[7]} for line in lines]
    return pd.DataFrame(named, columns=list(COLUMNS)).astype({"metric": "category"})


def line_of(rows, title, name):
    (table,) = [table for table in study_tables(rows) if table.title == title]
    (line,) = [line for line in table.body if line[0].text == name]
    return dict(zip(table.head, line, strict=True))


def test_the_profile_has_the_papers_settings_and_passes_them_on(monkeypatch):
    assert PROFILES["paper"].settings == PAPERS
    assert PROFILES["quick"].settings.schedule == "batched"
    monkeypatch.setattr("askwise.selector.DynamicFeatureSelector.fit", lambda self, X, y: self)
    for profile, preset in (("paper", "paper"), ("quick", "batched")):
        assert fit_method("rl-mlp", small(PROFILES[profile].settings)).policy.preset == preset


def test_a_study_of_the_risk_gap_draws_as_many_subsets_as_the_settings_say(monkeypatch):
    drawn = []

    def none_of(task, method, shares, per_size):
        drawn.append(per_size)
        return []

    monkeypatch.setattr(subsets, "_subsets", none_of)
    monkeypatch.setattr(subsets, "correlations", lambda *values: {})
    method = type("Fitted", (), {"epistemic_": object()})()
    for settings in (PAPERS, PROFILES["quick"].settings):
        with pytest.warns(RuntimeWarning):  # the mean of nothing
            list(subsets.risk_gap(small(settings), method))
    assert drawn == [100, subsets.SUBSETS_PER_SIZE]


def test_all_rows_of_a_large_table_on_request(tmp_path):
    for step in run(["data"], tmp_path, seeds=1, methods=["static-cmi"], data=["breast_cancer"], all_rows=True):
        assert not step.errors
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["limits"] == {"training": None, "testing": None}
    assert manifest["commands"][0].endswith("--rows all")
    about = dict(make_page(tmp_path).about)
    assert about["rows at most"] == "all for training, all for testing"
    assert about["settings"].startswith("Q-networks on the schedule 'batched', 25 subsets")
    rows = pd.read_csv(tmp_path / "rows.csv").set_index("metric")["value"]
    assert rows["training_rows"] + rows["test_rows"] == rows["rows"]
    with pytest.raises(InvalidInput, match="holds results made with limits"):
        run(["data"], tmp_path, seeds=1, methods=["static-cmi"], data=["breast_cancer"])


def test_methods_of_the_paper_are_what_their_names_say():
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("askwise.selector.DynamicFeatureSelector.fit", lambda self, X, y: self)
        for name in ("greedy-remlp-ungated", "admlp", "adremlp", "greedy-cart-best", "greedy-remlp-individual"):
            found[name] = fit_method(name, small())
    ungated, own, adapted, best = (found[name].adaptation for name in list(found)[:4])
    assert isinstance(ungated, ReparametrizedPredictor)
    assert (ungated.kind, ungated.gate) == ("last-layer", False)
    assert isinstance(own, MaskTrainedPredictor)
    assert own.reference == adapted.reference == "own"
    assert adapted.reparametrized
    assert isinstance(best, RulePredictor)
    assert best.aggregation == "best"
    assert found["greedy-remlp-individual"].policy.value.epochs == 10
    forest = make_model("forest", 0)[-1]
    assert (forest.min_samples_split, forest.min_samples_leaf) == (5, 2)
    assert make_model("subset-fuzzy-tree", 0)[-1].n_subsets == 10


def test_ferl_of_ex_fuzzy_is_fitted_as_any_other():
    pytest.importorskip("ex_fuzzy")
    model = make_model("ferl", 0).fit(small().X_train, small().y_train)
    assert RulePredictor(model).fit(small().X_train, small().y_train).predict_proba(small().X_test).shape[1] == 3


def test_a_method_without_its_package_is_skipped_with_a_word(monkeypatch, tmp_path):
    def unfit(task):
        raise AssertionError

    monkeypatch.setitem(METHODS, "greedy-ferl", Method("", unfit, package="no_such_package"))
    methods = ["static-cmi", "greedy-ferl"]
    assert {trial.method for trial in Grid(["uniform"], methods=methods).trials()} == {"static-cmi"}
    (said,) = Grid(["uniform"], methods=methods).not_installed()
    assert said == "greedy-ferl is skipped, because its package no_such_package is not installed."
    assert not Grid(["uniform"], methods=["static-cmi"]).not_installed()
    with pytest.raises(InvalidInput, match=r"Nothing to run\. greedy-ferl is skipped"):
        run(["uniform"], tmp_path, methods=["greedy-ferl"])


def test_the_list_names_profiles_illustrations_and_claims():
    listed = CliRunner().invoke(app, ["bench", "--list"]).stdout
    for name in (*METHODS, *(f"{claim.text} ({claim.where})" for claim in CLAIMS)):
        assert name in listed
    for illustration in ILLUSTRATIONS:
        assert f"{illustration.title} ({illustration.label})" in listed
    assert "100 subsets per size" in listed


def test_a_rare_disease_by_closed_forms():
    """One case in two after a result as strong as the prior odds."""
    prior, balanced = 0.001, 999.0
    found = rare_disease_uncertainty(np.array([1.0, balanced]), settled=True)
    assert found["entropy"][0] == pytest.approx(-prior * np.log(prior) - 0.999 * np.log(0.999), rel=0.02)
    assert found["entropy"][1] == pytest.approx(np.log(2), abs=1e-3)
    assert 0 < found["EU"][1] < found["EU"][0]
    kept = rare_disease_uncertainty(np.array([1.0, balanced]), settled=False)
    assert kept["EU"][1] > 10 * kept["EU"][0]


def test_the_risk_of_a_frozen_model_grows_and_that_of_the_exact_one_never():
    for by_features in risks_by_features():
        nothing, one, both = by_features["frozen, mean-imputed"]
        assert one > nothing > both
        assert (by_features["exact"].diff()[1:] <= 1e-12).all()


def test_subsets_that_are_rarely_visited_pay():
    gaps = pd.DataFrame([risk_gaps(share) for share in (0.1, 0.5, 0.9)])
    assert (gaps >= 0).all(axis=None)
    assert gaps["gap on B"].is_monotonic_increasing
    assert gaps["gap on A"].is_monotonic_decreasing


def test_tables_of_what_was_measured_and_not_shown():
    lines: list[Any] = []
    for data, r in (("wine", 0.8), ("heart", 0.2)):
        trial = (data, "rl-remlp", "uniform", 0)
        for metric, value in (("pearson", r), ("pearson_p", 0.01)):
            lines.append((*trial, "risk_gap", metric, value, {"loss": "error", "measure": "variance"}))
        lines.append((*trial, "risk_gap", "mean_delta", 0.1, {"loss": "error"}))
    trial = ("wine", "rl-remlp", "uniform", 0)
    for k, (size, errors) in enumerate([(4, (0.3, 0.2, 0.1)), (4, (0.3, 0.3, 0.1)), (9, (0.2, 0.3, 0.1))]):
        for name, error in zip(("imputed", "adapted", "local"), errors, strict=True):
            at = {"subset": k, "subset_size": size}
            lines.append((*trial, "reparametrization", f"error_{name}", error, at))
    for measure, value in (("total", 0.2), ("variance", 0.4), ("random", 0.9), ("epistemic", 0.9)):
        lines.append((*trial, "selective", "aurc", value, {"budget": 1.0, "measure": measure}))
    for measure, value in (("total", 0.7), ("epistemic", 0.6)):
        lines.append((*trial, "shift", "auroc", value, {"budget": 1.0, "sigma": 0.8, "measure": measure}))
    lines.append((*trial, "shift", "entropy", 0.5, {"budget": 1.0, "sigma": 0.8}))
    rows = as_rows(lines)
    average = line_of(rows, "Epistemic uncertainty and risk gap", "RL ReMLP*, average")
    assert (average["r, variance"].text, average["r, variance"].paper) == ("0.500", "-0.01")  # (0.25 - 0.26) / 2
    assert line_of(rows, "Epistemic uncertainty and risk gap", "RL ReMLP*, Wine")["p of r, variance"].text == "0.010"
    errors = line_of(rows, "Reparametrization and test error", "RL ReMLP*, all (3 subsets)")
    assert [errors[f"{name} error, %"].text for name in ("lower", "higher", "equal")] == ["33.3"] * 3
    assert errors["lower error, %"].paper == "47.0"
    by_budget = line_of(rows, "Reparametrization and risk gap by budget", "RL ReMLP*, Wine")
    assert [entry.text for entry in list(by_budget.values())[1:]] == ["0.200", "0.150", "0.100", "0.200"]
    assert by_budget["imputed, 30 %"].paper == "0.056"
    selective = line_of(rows, "Selective prediction, averaged over the measures", "RL ReMLP*")
    assert (selective["AURC"].text, selective["AURC"].paper) == ("30.00", "23.81")
    shift = line_of(rows, "Entropy and AUROC under distribution shift", "RL ReMLP*, 30 %")
    assert shift["sigma 0.8"].text == "0.50 · 0.70 · 0.600"


def test_claims_about_single_numbers_follow_the_rows():
    for gain, loss, verdict in ((0.03, 0.1, HOLDS), (0.08, 0.3, FAILS)):
        lines: list[Any] = []
        for seed in range(3):
            tiny = 0.0001 * seed
            for name in ("rl-remlp", "greedy-remlp"):
                for metric, value in (("accuracy", 0.7 + gain + tiny), ("random_accuracy", 0.7)):
                    lines.append(("wine", name, "variable", seed, "accuracy", metric, value, {"budget": 1.0}))
            for name, lost in (("greedy-cart", 0.2), ("rl-remlp", 0.2), ("dime", loss), ("vip", loss)):
                for sigma, value in ((0.0, 0.8), (2.0, 0.8 - lost + tiny * (name in ("dime", "vip")))):
                    at = {"budget": 1.0, "sigma": sigma}
                    lines.append(("wine", name, "uniform", seed, "shift", "accuracy", value, at))
            for weight, value in ((0.0, 0.7), (0.1, 0.7 * (1 + gain / 2.9) + tiny)):
                at = {"budget": 1.0, "risk_weight": weight}
                lines.append(("wine", "greedy-mlp", "uniform", seed, "risk_weights", "accuracy", value, at))
        found = {each.claim: each.verdict for each in verdicts(as_rows(lines))}
        assert found["The choices of ReMLP gain 2 to 5 points over random ones"] == verdict
        assert found["Jointly trained methods (DIME, VIP) lose less to strong noise"] == verdict
        assert found["Lambda of 0.1 gains 0.9 % over 0 (relative)"] == HOLDS


def test_claims_that_the_papers_own_print_contradicts():
    printed = {claim.text: claim.printed for claim in CLAIMS}
    assert "RL MLP* in AUROC" in printed["CART is the worst in selective prediction, in every metric"]
    assert printed["On Cirrhosis CWCF is unusually poor under equal prices"].startswith("contradict: 74.6")
    assert printed["Stronger methods are farther from local models (KL ratio)"] == "agree"
