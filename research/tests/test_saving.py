"""Baselines are saved and loaded as selectors are, once the package that registers their classes is imported."""

import importlib
import pkgutil
import subprocess
import sys
from typing import Any

import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.images.conftest import make_images, make_network
from tests.persistence import cases
from tests.persistence.round_trips import classes_that_come_back

import askwise_bench
from askwise.acquirer import FeatureAcquirer
from askwise.datasets import make_gaussian
from askwise.errors import InvalidInput
from askwise.policy import Policy
from askwise.predict import SubsetPredictor
from askwise.vision import PatchGrid
from askwise_bench import baselines

pytest.importorskip("safetensors")
pytest.importorskip("skops")

ABSTRACT = {"Baseline", "FullRowBaseline", "PatchBaseline", "TwoNetworkBaseline"}


def around_baselines():
    """Pairs (name, fitted baseline)."""
    X, y = cases.make_rows()
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    small: dict[str, dict[str, Any]] = {
        "AACO": {"epochs": 1},
        "CWCF": {"n_episodes": 4, "pretrain_updates": 1},
        "DIME": {"epochs": 1, "pretrain_epochs": 1},
        "EDDI": {"steps": 1},
        "GDFS": {"epochs": 1, "pretrain_epochs": 1},
        "INVASE": {"steps": 1},
        "Opportunistic": {"n_episodes": 4},
        "TabNet": {"epochs": 1, "n_steps": 1},
        "VIP": {"random_epochs": 1, "biased_epochs": 1},
        "StaticCMI": {"classifier": tree},
        "StaticBest": {"classifier": tree},
        "FullInformation": {"classifier": tree},
        "RandomOrder": {"epochs": 1},
    }
    for name, options in small.items():
        yield name, getattr(baselines, name)(**options, random_state=0).fit(X, y)
    yield "AACO frozen", baselines.AACO(tree.fit(X, y), random_state=0).fit(X, y)
    made = make_gaussian(60, 4, random_state=0)
    yield "ExactOracle", baselines.ExactOracle(made).fit(made.X, made.y)


def around_image_baselines():
    """Pairs (name, fitted baseline on patches)."""
    from askwise_bench.image_baselines import PatchDIME, PatchGDFS, PatchVIP

    for kind in (PatchDIME, PatchVIP, PatchGDFS):
        options: dict[str, Any] = {"pretrain_epochs": 1, "epochs": 1, "hidden": (4,), "batch_size": 16}
        network = make_network()
        yield kind.__name__, kind(network, groups=PatchGrid(2, 2), random_state=0, **options).fit(*make_images(40))


def concrete_classes():
    """All baselines, policies and predictors of this package, public or not."""
    for module in pkgutil.walk_packages(askwise_bench.__path__, "askwise_bench."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, open_classes = set(), [FeatureAcquirer, Policy, SubsetPredictor]
    while open_classes:
        kind = open_classes.pop()
        open_classes += kind.__subclasses__()
        if kind.__module__.startswith("askwise_bench."):
            found.add(kind.__name__)
    return found - ABSTRACT


def test_every_baseline_comes_back_bit_for_bit(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("pytorch_tabnet")
    seen = classes_that_come_back((around_baselines, around_image_baselines), tmp_path)
    assert set(baselines.__all__) - ABSTRACT <= concrete_classes()
    missing = concrete_classes() - seen
    assert not missing, f"add a case for {missing}, so that it is known to be saved"


def test_drawn_rows_are_for_selectors(tmp_path):
    with pytest.raises(InvalidInput, match="DynamicFeatureSelector on a table"):
        baselines.StaticCMI(random_state=0).fit(*cases.make_rows()).save(tmp_path / "saved", rows="synthetic")


def loaded_in_a_new_process(folder, imported, trusted=()):
    code = f"import askwise{imported}; print(type(askwise.load({str(folder)!r}, trusted={list(trusted)})).__name__)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_folder_does_not_bring_the_package_in(tmp_path):
    """Only a caller who imports the package, or trusts its names, lets a folder name its classes."""
    baselines.StaticCMI(random_state=0).fit(*cases.make_rows()).save(tmp_path / "static")
    refused = loaded_in_a_new_process(tmp_path / "static", "")
    assert refused.returncode == 1
    assert "askwise_bench.baselines.static" in refused.stderr
    assert "trusted=[" in refused.stderr
    assert loaded_in_a_new_process(tmp_path / "static", ", askwise_bench.baselines").stdout == "StaticCMI\n"
    names = [f"askwise_bench.baselines.static.{name}" for name in ("StaticCMI", "_with_squares")]
    assert loaded_in_a_new_process(tmp_path / "static", "", names).stdout == "StaticCMI\n"
