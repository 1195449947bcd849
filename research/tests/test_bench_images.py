"""Images in the grid: one small set of made images, every method, the report and the claims."""

import numpy as np
import pandas as pd
import pytest
from tests.made import made_images

pytest.importorskip("torch")

from askwise.datasets.images import ImageDataset
from askwise.errors import InvalidInput
from askwise_bench.grid import images as image_grid
from askwise_bench.grid import run as runner
from askwise_bench.grid.images import IMAGE_METHODS
from askwise_bench.grid.suites import SUITES
from askwise_bench.grid.tasks import Limits, make_task
from askwise_bench.paper.claims import judged
from askwise_bench.paper.findings import FAILS, HOLDS
from askwise_bench.paper.image_claims import IMAGE_CLAIMS
from askwise_bench.paper.paper_results import IMAGE_ACCURACIES
from askwise_bench.report.image_results import image_pictures, image_tables
from askwise_bench.report.report import write_page
from askwise_bench.report.rows import read_rows

LEVELS = range(1, 11)


@pytest.fixture
def made(monkeypatch):
    """`load_images` gives made images, and training is short."""
    (X, y), (X_test, y_test) = made_images(), made_images(30, seed=1)
    dataset = ImageDataset("mnist", X, y, X_test, y_test, ("a", "b", "c"), "made")
    monkeypatch.setattr("askwise_bench.grid.images.load_images", lambda name: dataset)
    for name, stage in stages().items():
        short = tuple(min(1, epochs) for epochs in stage["quick"])
        monkeypatch.setitem(stages(), name, {**stage, "quick": short})
    monkeypatch.setattr("askwise_bench.image_baselines.stages.QUICK_STATES", 60)
    return dataset


def stages():
    from askwise_bench.image_baselines.stages import STAGES

    return STAGES


def test_every_method_is_run_resumed_and_reported(made, tmp_path):
    steps = list(runner.run(["images"], tmp_path, seeds=1))
    assert [step.errors for step in steps] == [{}] * len(IMAGE_METHODS)
    assert list(runner.run(["images"], tmp_path, seeds=1)) == []
    rows = read_rows(tmp_path)
    assert set(rows["method"]) == set(IMAGE_METHODS)
    for metric in ("accuracy", "random_accuracy", "middle_accuracy", "ece", "entropy"):
        assert (rows["metric"] == metric).sum() == len(IMAGE_METHODS) * len(LEVELS)
    members = rows.loc[rows["metric"] == "epistemic", "method"].unique()
    assert set(members) == {"cnn", "recnn", "adcnn", "adrecnn", "adcnn-on-policy", "adcnn-alternating", "patch-askwise"}
    middle = rows[(rows["metric"] == "middle_accuracy") & (rows["budget"] == 4) & (rows["method"] == "patch-askwise")]
    assert middle["value"].item() > 0.9  # the three patches that tell the class are among the four in the middle
    _, _, page = write_page(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "96.54 ± 2.90" in text
    assert "MNIST, 2-10" in text
    assert (tmp_path / "figures/images-difference.svg").exists()


def test_networks_along_their_own_order_are_measured_on_request(made, tmp_path):
    wanted = ["cnn-own-order", "adcnn-own-order"]
    assert set(wanted).isdisjoint(SUITES["images"].methods)
    steps = list(runner.run(["images"], tmp_path, seeds=1, methods=wanted))
    assert [step.errors for step in steps] == [{}, {}]
    rows = read_rows(tmp_path)
    own, middle = (rows[rows["metric"] == metric]["value"].to_numpy() for metric in ("accuracy", "middle_accuracy"))
    assert len(own) == len(middle) == 2 * len(LEVELS)
    heads = [line[0].text for line in image_tables(rows)[0].body]
    assert heads == ["CNN, its own order", "AdCNN, its own order"]
    assert image_pictures(rows) == []  # no color is left for variants


def test_seeds_draw_their_own_images_within_the_limits(made):
    one, again, other = (make_task("mnist", "uniform", seed, Limits(60, 20)) for seed in (0, 0, 1))
    assert (len(one.y_train), len(one.y_test)) == (60, 20)
    np.testing.assert_array_equal(one.X_train, again.X_train)
    assert not np.array_equal(one.X_train, other.X_train)
    with pytest.raises(InvalidInput, match="equal prices; got prices 'variable'"):
        make_task("mnist", "variable", 0, Limits(60, 20))


def test_tables_and_images_stay_apart():
    tabular = runner.Grid(["uniform"], methods=["static-cmi"], data=["wine", "mnist"]).trials()
    assert {trial.data for trial in tabular} == {"wine"}
    assert runner.Grid(["uniform"], data=["wine", "mnist"]).left_out() == ["uniform does not take the data mnist."]
    assert runner.Grid(["images"], data=["mnist"]).left_out() == []
    assert set(SUITES["images"].methods).isdisjoint(SUITES["uniform"].methods)
    with pytest.raises(InvalidInput, match="Nothing to run"):
        runner.run(["images"], "nowhere", methods=["static-cmi"])


def test_the_paper_profile_takes_the_papers_network_and_stages(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    assert runner.PROFILES["paper"].settings.images == "paper"
    assert image_grid._network("mnist", "paper", 10).fc.out_features == 10
    with pytest.raises(InvalidInput, match=r"resnet18-f37072fd\.pth"):
        image_grid._network("cifar10", "paper", 10)


def figures(accuracy, n_seeds=3):
    """Rows in which the accuracies of Table 4, or others, were measured with a little noise."""
    rng = np.random.default_rng(0)
    lines = []
    for method, by_data in accuracy.items():
        for data, mean in by_data.items():
            for seed in range(n_seeds):
                for level in LEVELS:
                    value = mean / 100 + 0.001 * (level - 5.5) + 1e-4 * rng.normal()
                    common = {"data": data, "method": method, "seed": seed, "prices": "uniform", "budget": float(level)}
                    at_random, error = value - 0.05 + 1e-4 * rng.normal(), 1 - value + 5e-4 * rng.normal()
                    values = {"accuracy": value, "random_accuracy": at_random, "ece": error, "entropy": 1.0}
                    lines += [{**common, "study": "images", "metric": k, "value": v} for k, v in values.items()]
    return pd.DataFrame(lines)


def test_claims_are_judged_by_the_rows():
    printed = {name: {data: mean for data, (mean, _) in line.items()} for name, line in IMAGE_ACCURACIES.items()}
    verdicts = {claim.text: judged(claim, claim.look(figures(printed))) for claim in IMAGE_CLAIMS}
    found = {text: verdict.verdict for text, verdict in verdicts.items()}
    assert found["VIP has the best accuracy over all images"] == FAILS
    assert "AdCNN has 71.97 on average, VIP 70.32" in verdicts["VIP has the best accuracy over all images"].printed
    assert found["Frozen networks drop on CIFAR-10 and Imagenette (below DIME and VIP)"] == HOLDS
    assert found["Reparametrization alone does not improve images (by less than 2 points)"] == FAILS
    assert found["AdCNN is above CNN (MNIST and Imagenette)"] == HOLDS
    assert found["On images, the proposed policies beat random patches"] == HOLDS
    assert found["VIP hardly gains from its policy on images (less than 2 points)"] == FAILS
    assert found["Calibration improves with every patch"] == HOLDS
    assert found["The calibration error of images falls as accuracy rises"] == HOLDS
    assert found["The default of this library beats DIME, VIP and GDFS on images"] == "not measured"


def test_table_4_has_both_averages():
    rows = figures({"cnn": {"mnist": 80.0}, "patch-vip": {"mnist": 70.0}})
    table = image_tables(rows)[0]
    assert table.head == ("method", "MNIST, 1-10", "MNIST, 2-10")
    (_, whole, later), (_, vip, _) = table.body
    assert (whole.text, whole.paper, whole.best, vip.best) == ("80.00", "90.70 ± 8.97", True, False)
    assert float(later.text) == pytest.approx(80.05, abs=0.011)  # the first, lowest number of patches is left out
    assert [picture.label for picture in image_pictures(rows)][:2] == ["Figure 2, left", "Figure 2, right"]
    assert image_tables(rows[:0]) == []
    assert image_pictures(rows[:0]) == []
