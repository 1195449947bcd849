"""The page of a real run: what it says is in the rows, and what is not there is said."""

import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from askwise.errors import InvalidInput
from askwise_bench.grid.methods import METHODS
from askwise_bench.grid.run import run
from askwise_bench.grid.store import COLUMNS, collect
from askwise_bench.grid.trials import Trial, write
from askwise_bench.report.figures import SHOWN, accuracy_pictures, method_colors
from askwise_bench.report.illustrations import ILLUSTRATIONS, decompositions, illustration_pictures
from askwise_bench.report.report import make_page, tables_to_markdown, to_markdown, write_page
from askwise_bench.report.rows import Quantity, read_rows
from askwise_bench.report.study_figures import (
    MOST_POINTS,
    pictures,
    points,
    study_pictures,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run of the one method that is fitted in no time."""
    out = tmp_path_factory.mktemp("bench")
    assert not [p.errors for p in run(["uniform"], out, seeds=2, methods=["static-cmi"]) if p.errors]
    return out


@pytest.fixture(scope="module")
def page(folder):
    return make_page(folder)


@pytest.fixture(scope="module")
def files(folder, page):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("askwise_bench.report.report.make_page", lambda folder: page)  # to draw takes long
        return write_page(folder)


class Reader(HTMLParser):
    """Ids, addresses and tags that were opened and not closed."""

    VOID = ("meta", "br", "link")

    def __init__(self, text):
        super().__init__()
        self.ids, self.addresses, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("href", "src", "xlink:href") if name in given]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_one_file_of_sound_html(files):
    page = Reader(files[0].read_text(encoding="utf-8"))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert all(address.startswith("#") for address in page.addresses)
    assert {address[1:] for address in page.addresses} <= set(page.ids)


def test_numbers_are_those_of_the_rows(folder, files):
    rows = pd.read_csv(folder / "rows.csv")
    by_seed = 100 * rows[rows["metric"] == "accuracy"].groupby("seed")["value"].mean()
    for file in (files[0], files[2]):
        text = file.read_text(encoding="utf-8")
        assert f"{by_seed.mean():.2f}" in text
        assert f"/ {by_seed.std():.2f}" in text


def test_what_is_missing_is_said(files):
    _, first, tables = (file.read_text(encoding="utf-8") for file in files)
    assert "not run: askwise bench switch: One feature tells which others matter (beyond)" in tables
    assert "Not measured here: RL ReMLP has the best average accuracy;" in first
    assert first.startswith("# Results\n\n1 method on Wine.")
    assert "| Static CMI |" in tables


def test_the_same_rows_give_the_same_bytes(files, page):
    html, markdown, behind = (file.read_text(encoding="utf-8") for file in files)
    assert all(picture.svg in html for picture in page.pictures)
    assert all(picture.svg in html for picture in illustration_pictures()), "drawn a second time"
    assert to_markdown(page, files[2].name) == markdown
    assert tables_to_markdown(page, files[1].name) == behind


def test_failures_are_said(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("askwise_bench.report.report.pictures", lambda rows: [])  # they take long and are not looked at
    out = shutil.copytree(folder, tmp_path / "copy")
    error = "Traceback\nValueError: <too & bad>\n"
    write(Trial("wine", "vip", "uniform", 0), "uniform", "accuracy", out, [], {"fit": 0.0, "study": 0.0}, error)
    collect(out)
    html, _, markdown = (file.read_text(encoding="utf-8") for file in write_page(out))
    line = "failed: uniform: vip on wine, uniform prices, seed 0: ValueError: "
    assert f"{line}<too & bad>" in markdown
    assert f"{line}&lt;too &amp; bad&gt;" in html


def test_how_it_was_made(folder, page):
    about = dict(page.about)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert about["profile"] == manifest["profile"]
    assert manifest["versions"]["numpy"] in about["made with"]
    assert about["seeds"].startswith("2;")
    assert about["studies"] == "accuracy"


def test_times_count_a_fit_once(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("askwise_bench.report.report.pictures", lambda rows: [])
    out = shutil.copytree(folder, tmp_path / "copy")
    for seconds, path in enumerate(sorted((out / "trials").iterdir()), start=1):
        document = json.loads(path.read_text())
        document["seconds"]["fit"] = float(seconds)
        path.write_text(json.dumps(document))
        path.with_name(path.name.replace(document["suite"], "another", 1)).write_text(
            json.dumps({**document, "suite": "another"})
        )
    times = make_page(out).tables[-1]
    assert times.title == "Time to fit"
    assert times.body[0][1].text == "1.5"


def test_markdown_tables_have_equal_lines(page):
    for block in (to_markdown(page, "t") + tables_to_markdown(page, "f")).split("\n\n"):
        lines = block.strip().splitlines()
        if lines and lines[0].startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="is not the manifest of a benchmark"):
        write_page(tmp_path)


def test_curves_are_drawn_through_the_means(folder, page):
    found = {picture.name: picture for picture in page.pictures}
    drawn = ("accuracy", "ece", "difference", "entropy")
    illustrated = {illustration.name for illustration in ILLUSTRATIONS}
    assert set(found) == {*illustrated, *(f"{what}-uniform" for what in drawn)}
    rows = read_rows(folder)
    curve = re.search(r'id="accuracy-uniform-static-cmi">\s*<path d="([^"]+)"', found["accuracy-uniform"].svg)
    assert curve is not None
    heights = np.array([float(y) for y in re.findall(r"[ML] [-\d.]+ ([-\d.]+)", curve[1])])
    chosen = Quantity("accuracy", "accuracy", {"prices": "uniform"}).of(rows)
    means = chosen.groupby("budget")["value"].mean().to_numpy()
    assert len(heights) == len(means) == 10
    assert np.corrcoef(heights, means)[0, 1] == pytest.approx(-1, abs=1e-6)  # the page counts from the top


def test_random_choices_are_dotted(page):
    (picture,) = [p for p in page.pictures if p.name == "entropy-uniform"]
    assert 'id="entropy-uniform-static-cmi-random"' in picture.svg
    assert "stroke-dasharray" in picture.svg


def test_colors_do_not_depend_on_who_else_ran():
    alone = method_colors(pd.DataFrame({"method": ["vip"]}))
    together = method_colors(pd.DataFrame({"method": list(METHODS)}))
    assert alone["vip"] == together["vip"]
    assert list(together) == list(SHOWN)
    others = method_colors(pd.DataFrame({"method": ["eddi", "gdfs", "vip"]}))
    assert len(set(others.values())) == 3


def test_bernoulli_members_as_the_appendix_has_them():
    grid = (np.arange(2000) + 0.5) / 2000
    uniform, atoms = (panel.lines for panel in decompositions({"u": grid, "a": np.array([0.0, 1.0])}))
    for lines, expected in ((uniform, np.log(2) - 0.5), (atoms, np.log(2))):
        total, disagreement, distance = (lines.T[name].to_numpy() for name in ("e", "EU", "KL(mean || q)"))
        assert disagreement == pytest.approx(expected, abs=1e-4)
        assert total == pytest.approx(disagreement + distance)
        assert distance[49] == pytest.approx(0, abs=1e-12)  # phi = 0.5, where the members' mean is
    assert "KL(mean || q)" in illustration_pictures()[-1].svg


def study_lines(n):
    rng = np.random.default_rng(0)
    for method in ("rl-remlp", "vip"):
        trial = {"data": "wine", "method": method, "prices": "uniform", "seed": 0}
        for percent in range(0, 100, 10):
            for budget, height in ((1.3, 0.5), (6.5, 0.8)):
                kept = {"study": "selective", "metric": "kept_accuracy", "measure": "total", "rejected": percent}
                yield {**trial, **kept, "budget": budget, "value": height + percent / 1000}
        studies = {"bias": ["kl_full", "kl_ref"], "scatter": ["aleatoric", "epistemic"]}
        if method == "rl-remlp":
            studies["reparametrization"] = ["error_imputed", "error_adapted", "error_local"]
        for k in range(n):
            for study, metrics in studies.items():
                item = {"case": k, "budget": 3.0} if study == "scatter" else {"subset": k, "subset_size": 3}
                for metric in metrics:
                    yield {**trial, **item, "study": study, "metric": metric, "value": rng.random()}


def as_rows(lines):
    return pd.DataFrame(lines, columns=list(COLUMNS)).astype({"metric": "category"})


def accuracy_line(method, prices, budget, metric, value):
    trial = {"data": "wine", "method": method, "prices": prices, "seed": 0}
    return {**trial, "study": "accuracy", "metric": metric, "budget": budget, "value": value}


def test_studies_are_drawn_where_they_are_there():
    rows = as_rows(study_lines(7))
    found = {picture.name: picture for picture in study_pictures(rows)}
    assert set(found) == {"rejection", "bias", "scatter", "reparam", "reparam-gaps"}
    assert found["scatter"].svg.count("<use") - found["scatter"].svg.count("ytick") >= 14
    assert [picture.name for picture in pictures(rows)][-1] == "bernoulli"
    pairs = points(rows, Quantity("bias", "kl_full"), Quantity("bias", "kl_ref")).reset_index()
    assert len(pairs) == 14
    chosen = Quantity("bias", "kl_ref", {"method": "vip", "subset": 4}).of(rows)["value"]
    assert pairs.loc[(pairs["method"] == "vip") & (pairs["subset"] == 4), "y"].item() == chosen.item()


def test_a_method_without_random_choices_does_not_empty_the_figure_of_the_others():
    lines = [
        accuracy_line(method, "variable", budget, metric, 0.5 + 0.1 * budget)
        for method in ("vip", "static-best")
        for metric in ("accuracy", "random_accuracy", "entropy", "random_entropy")
        for budget in (1.0, 2.0)
        if method == "vip" or not metric.startswith("random_")
    ]
    rows = as_rows(lines)
    found = {picture.name: picture for picture in accuracy_pictures(rows)}
    assert 'id="difference-variable-vip"' in found["difference-variable"].svg
    assert "static-best" not in found["difference-variable"].svg


def test_nothing_is_drawn_of_prices_whose_methods_are_not_drawn():
    lines = [accuracy_line(name, "variable", 1.0, "accuracy", 0.5) for name in SHOWN]
    lines.append(accuracy_line("gdfs", "uniform", 1.0, "accuracy", 0.5))
    rows = as_rows(lines)
    assert {picture.name.split("-")[-1] for picture in accuracy_pictures(rows)} == {"variable"}


def test_rejection_is_drawn_at_the_highest_budget():
    rows = as_rows(study_lines(3))
    (picture,) = [picture for picture in study_pictures(rows) if picture.name == "rejection"]
    labels = [float(text) for text in re.findall(r">([\d.]+)%</text>", picture.svg)]
    assert labels
    assert min(labels) >= 79


def test_few_points_are_drawn_of_very_many():
    rows = as_rows(line for line in study_lines(3 * MOST_POINTS) if line["study"] == "bias")
    (picture,) = [picture for picture in study_pictures(rows) if picture.name == "bias"]
    points_of_vip = re.search(r'id="bias-vip">(.*?)</g>\s*<g id', picture.svg, re.DOTALL)
    assert points_of_vip is not None
    assert points_of_vip[1].count("<use") == MOST_POINTS
