"""Rows in the repository: kept without loss, marked when their code has changed, and computed again."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from askwise.errors import InvalidInput
from askwise_bench import check_rows, keep_rows
from askwise_bench.grid import fingerprints, kept
from askwise_bench.grid.fingerprints import Sources, running
from askwise_bench.grid.run import Grid, run
from askwise_bench.grid.suites import SUITES
from askwise_bench.report.report import make_page, write_docs
from askwise_bench.report.rows import read_rows

RULES = '''"""Text."""
DEPTH = 3

class Rules:
    """What it is."""

    def fit(self, X: list) -> object:
        """Why."""
        if DEPTH < 1:
            raise ValueError("depth")
        return self.grown(X)

    def grown(self, X):
        return X

    def as_svg(self):
        return "drawn"
'''
METHODS = """from askwise.rules import Rules
from askwise.other import Other

def fit_method(name):
    return name

METHODS = {"rules": Rules, "other": Other}
"""
STUDY = """from askwise.metrics import share

def accuracy(task, method):
    return share(method.fit(task))
"""
BASE = {
    "askwise.metrics": "def share(hits):\n    return hits.mean()\n",
    "askwise.rules": RULES,
    "askwise.other": "class Other:\n    def fit(self, X):\n        return X\n",
    "bench.grid.tasks": "def make_task(name):\n    return name\n",
    "bench.grid.methods": METHODS,
    "bench.studies.accuracy": STUDY,
}


def changed(module, old, new):
    assert old in BASE[module]
    return Sources({**BASE, module: BASE[module].replace(old, new)})


def test_a_fingerprint_changes_with_the_code_behind_the_number():
    before = Sources(BASE).fingerprint("rules", "accuracy")
    assert before is not None
    for module, old, new in [
        ("askwise.rules", "DEPTH = 3", "DEPTH = 4"),
        ("askwise.rules", "        return X\n", "        return X[1:]\n"),
        ("askwise.metrics", "hits.mean()", "hits.sum()"),
        ("bench.grid.tasks", "return name", "return name.lower()"),
        ("bench.grid.methods", '"rules": Rules', '"rules": Rules()'),
    ]:
        assert changed(module, old, new).fingerprint("rules", "accuracy") != before, (module, new)


def test_a_fingerprint_stays_where_nothing_behind_the_number_changes():
    before = Sources(BASE).fingerprint("rules", "accuracy")
    for module, old, new in [
        ("askwise.rules", '"""Why."""', '"""Because."""'),
        ("askwise.rules", '"""Text."""', "# a comment"),
        ("askwise.rules", 'ValueError("depth")', 'ValueError(f"depth must be above {0}")'),
        ("askwise.rules", "X: list) -> object", "X: tuple) -> None"),
        ("askwise.rules", '"drawn"', '"painted"'),  # nobody asks for the drawing
        ("askwise.other", "return X", "return X * 2"),
    ]:
        assert changed(module, old, new).fingerprint("rules", "accuracy") == before, (module, new)
    moved = {("other" + name if name == "askwise.metrics" else name): text for name, text in BASE.items()}
    moved["bench.studies.accuracy"] = BASE["bench.studies.accuracy"].replace("askwise.metrics", "otheraskwise.metrics")
    assert Sources(moved).fingerprint("rules", "accuracy") == before


def test_methods_have_fingerprints_of_their_own():
    sources = running()
    found = {name: sources.fingerprint(name, "accuracy") for name in ("static-cmi", "vip", "greedy-cart", "rl-remlp")}
    assert None not in found.values()
    assert len(set(found.values())) == 4
    studies = {suite.study.__name__ for suite in SUITES.values()}
    assert len({sources.fingerprint("vip", name) for name in studies}) == len(studies)
    assert sources.fingerprint("no such method", "accuracy") is None
    assert sources.fingerprint("vip", "no_such_study") is None


def test_what_a_baseline_reaches_is_not_all_of_the_library():
    sources = running()
    roots = [sources.entries["static-cmi"], sources.modules["askwise_bench.studies.accuracy"].definitions["accuracy"]]
    reached = {unit.module for unit in sources.reached(roots)}
    assert "askwise_bench.baselines.static" in reached
    assert not any(name.startswith(("askwise.web", "askwise.cli", "askwise_bench.report")) for name in reached)
    assert "askwise_bench.baselines.vip" not in reached


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of the one method that is fitted in no time."""
    out = tmp_path_factory.mktemp("bench")
    assert not [p.errors for p in run(["uniform", "data"], out, seeds=3, methods=["static-cmi"]) if p.errors]
    return out


@pytest.fixture
def into(folder, tmp_path):
    keep_rows.keep(folder, tmp_path / "kept", "aaaaaaa", running())
    return tmp_path / "kept"


def test_what_is_kept_is_what_was_measured(folder, into):
    columns = [str(name) for name in read_rows(folder) if name != "value"]
    before, after = (
        read_rows(where).astype({"metric": str, "study": str}).sort_values(columns, ignore_index=True)
        for where in (folder, into)
    )
    pd.testing.assert_frame_equal(before, after[before.columns], check_dtype=False)
    assert set(after["commit"]) == {"aaaaaaa"}
    assert json.loads(after["made"].iloc[0])["limits"] == {"training": 2000, "testing": 500}
    assert kept.fits(after).all()
    assert len(kept.read_times(into)) == 6


def test_rows_of_several_commits_stand_side_by_side(folder, into, tmp_path):
    other = shutil.copytree(folder, tmp_path / "other")
    for path in (other / "trials").glob("*--0.json"):
        path.unlink()
    for path in (other / "trials").glob("*--2.json"):
        text = path.read_text().replace('"seed": 2', '"seed": 7')
        path.with_name(path.name.replace("--2", "--7")).write_text(text)
        path.unlink()
    before = read_rows(into)
    told = keep_rows.keep(other, into, "bbbbbbb", running())
    after = read_rows(into)
    by_commit = {seed: set(part["commit"]) for seed, part in after.groupby("seed")}
    assert by_commit == {0: {"aaaaaaa"}, 1: {"aaaaaaa"}, 2: {"aaaaaaa"}, 7: {"bbbbbbb"}}
    assert (told["accuracy"].added, told["accuracy"].replaced, told["accuracy"].left) == (1, 0, 1)
    assert len(after) > len(before)
    numbers = [name for name in after if name not in ("value", *kept.PROVENANCE)]
    assert not after.duplicated(numbers).any()
    keep_rows.keep(other, into, "bbbbbbb", running(), replace=True)
    assert set(read_rows(into).query("seed == 1")["commit"]) == {"bbbbbbb"}


def aged(into, study="accuracy"):
    """The rows of a study as if their code had changed since."""
    rows = kept.read_kept(into)
    kept.write_kept(into, study, rows[rows["study"] == study].assign(fingerprint="0" * fingerprints.LENGTH))


def test_a_stale_cell_gives_way_to_a_fresh_one_and_not_the_other_way_round(folder, into):
    stale = Sources(BASE)  # does not know the methods: its fingerprints fit nothing
    assert keep_rows.keep(folder, into, "ccccccc", stale)["accuracy"].left == 3
    assert set(read_rows(into)["commit"]) == {"aaaaaaa"}
    aged(into)
    told = keep_rows.keep(folder, into, "ccccccc", running())
    assert (told["accuracy"].replaced, told["summary"].left) == (3, 3)


def test_stale_rows_are_marked_and_listed(into, tmp_path, monkeypatch):
    monkeypatch.setattr("askwise_bench.report.report.pictures", lambda rows: [])
    page = make_page(into)
    assert page.stale == []
    (into / "findings.md").write_text("Static is static.\n")
    aged(into)
    page = make_page(into)
    assert page.stale == ["accuracy, static-cmi: wine 3 (commit aaaaaaa)"]
    first, behind = (path.read_text(encoding="utf-8") for path in write_docs(into, tmp_path / "docs"))
    assert "| Static CMI ‡ |" in behind
    assert "- accuracy, static-cmi: wine 3 (commit aaaaaaa)" in behind
    assert "**stale**: 3 of 6 cells" in first
    assert "Static is static." in first
    assert "aaaaaaa (6 cells)" in first


def test_a_folder_of_kept_rows_without_their_origin_is_refused(into):
    path = into / "accuracy.parquet"
    pd.read_parquet(path).drop(columns="fingerprint").to_parquet(path)
    with pytest.raises(InvalidInput, match="must have the columns fingerprint"):
        read_rows(into)


def test_cells_are_computed_again(into, capsys):
    assert check_rows.main([str(into), "--cells", "2", "--seed", "1"]) == 0
    assert capsys.readouterr().out.count("agrees") == 2


def test_a_number_that_is_not_what_it_was_is_found(into, capsys):
    rows = kept.read_kept(into)
    table = rows[rows["study"] == "accuracy"].reset_index(drop=True)
    at = table.index[table["seed"].eq(1) & table["metric"].eq("accuracy")][3]
    table.loc[at, "value"] += 1e-4
    kept.write_kept(into, "accuracy", table)
    assert check_rows.main([str(into), "--cells", "3", "--studies", "accuracy", "--refresh"]) == 1
    said = capsys.readouterr().out
    assert said.count("agrees") == 2
    assert "DIFFERS  accuracy: static-cmi on wine, uniform prices, seed 1 (1 of" in said
    assert "accuracy: the fingerprints of 0 rows are renewed" in said


def test_a_number_that_is_gone_is_found(into):
    rows = kept.read_kept(into)
    part = rows[(rows["study"] == "summary") & (rows["seed"] == 0)]
    cell = tuple(part[kept.CELL].iloc[0])
    found = check_rows.compared(cell, part, part.iloc[1:])
    assert found.different == (f"{part['metric'].iloc[0]} is not recomputed",)


def test_what_agrees_can_be_renewed(into, capsys):
    aged(into)
    assert not kept.fits(kept.read_kept(into).query("study == 'accuracy'")).any()
    assert check_rows.main([str(into), "--cells", "1", "--studies", "accuracy", "--refresh"]) == 0
    assert kept.fits(kept.read_kept(into)).all()
    assert set(kept.read_kept(into)["commit"]) == {"aaaaaaa"}


def test_seconds_are_not_compared():
    lines = [("accuracy", 0.5), ("batch_seconds", 1.0), ("fit_total", 2.0), ("decision_model", 3.0)]
    table = pd.DataFrame(lines, columns=["metric", "value"])
    assert check_rows.compared(("wine", "vip", "uniform", 0, "rivals"), table, table.assign(value=[0.5, 9, 9, 9])) == (
        check_rows.Checked(("wine", "vip", "uniform", 0, "rivals"), 1, ())
    )


def test_the_sources_of_a_commit_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read from"):
        Sources.at("HEAD", tmp_path)


def test_what_is_kept_is_not_run_again(into, tmp_path):
    both = Grid(["uniform"], data=["wine"], methods=["static-cmi"], seeds=4)
    assert [trial.seed for trial in both.trials()] == [0, 1, 2, 3]
    assert [trial.seed for trial in replace(both, kept=into).trials()] == [3]
    assert len(replace(both, kept=into, profile="paper").trials()) == 4  # of other rows and settings
    with pytest.raises(InvalidInput, match=r"Nothing to run.*may have it all"):
        run(["uniform"], tmp_path, data=["wine"], methods=["static-cmi"], seeds=3, kept=into)
    with pytest.raises(InvalidInput, match="must be a folder of kept rows"):
        replace(both, kept=tmp_path).trials()
