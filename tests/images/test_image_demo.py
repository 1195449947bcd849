"""`askwise demo --data mnist` on made images."""

import json

import pytest
from tests.made import made_images
from typer.testing import CliRunner

pytest.importorskip("torch")

from askwise.cli.app import app
from askwise.datasets.images import ImageDataset
from askwise.errors import AskwiseError


@pytest.fixture
def made(monkeypatch):
    """`load_images` gives made images."""
    dataset = ImageDataset("mnist", *made_images(), *made_images(30, seed=1), ("a", "b", "c"), "made")
    monkeypatch.setattr("askwise.cli.image_demo.load_images", lambda name: dataset)


def test_the_demo_shows_images_patch_by_patch(made, monkeypatch, tmp_path):
    monkeypatch.setattr("askwise.cli.comparison.RANDOM_ORDERS", 1)
    page = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["demo", "--data", "mnist", "--budget", "3", "--report", str(page), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [row["budget"] for row in told["curves"]] == [1, 2, 3]
    assert told["story"]["trace"][1]["feature"].startswith("patch r")
    text = page.read_text(encoding="utf-8")
    assert 'class="film' in text
    assert "data:image/png;base64" in text
    assert "middle patches first" in text
    spoken = CliRunner().invoke(app, ["demo", "--data", "mnist", "--budget", "2", "--report", str(page)])
    assert spoken.exit_code == 0, spoken.output
    assert "middle patches first" in spoken.stdout


def test_the_demo_refuses_what_it_cannot_do(monkeypatch, tmp_path):
    wrong = CliRunner().invoke(app, ["demo", "--data", "mnist", "--model", "forest"])
    assert wrong.exit_code == 2
    assert "are for tables; mnist trains a small network" in wrong.output

    def absent(name):
        raise AskwiseError("train-images is not in the data home and could not be downloaded")

    monkeypatch.setattr("askwise.cli.image_demo.load_images", absent)
    gone = CliRunner().invoke(app, ["demo", "--data", "mnist", "--report", str(tmp_path / "r.html")])
    assert gone.exit_code == 1
    assert "not in the data home" in gone.output
    assert not (tmp_path / "r.html").exists()
