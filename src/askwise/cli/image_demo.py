"""`askwise demo --data mnist`: a small network of images, asked patch by patch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.cli.comparison import Story, compare, turning_case
from askwise.cli.demo_report import Report
from askwise.cli.options import Adaptation, Model, Setup
from askwise.datasets.images import ImageDataset, load_images
from askwise.errors import InvalidInput
from askwise.networks import seeded
from askwise.plotting import svg
from askwise.selector import DynamicFeatureSelector
from askwise.trajectory import Trajectory
from askwise.vision import PatchGrid, filmstrip, small_cnn, train_classifier

GRID = PatchGrid(4, 4)
MOST_TRAINING_IMAGES, MOST_TEST_IMAGES = 3000, 200
EPOCHS = 5
MOST_PATCHES = 10
PATCHES_IN_FILM = 6


@dataclass(frozen=True)
class ImageModel:
    """A trained network, the images that it was trained on, and images held out."""

    dataset: ImageDataset
    model: str
    estimator: Any
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    split: str


def demonstrate(setup: Setup, say: Callable[[str], None]) -> tuple[ImageModel, DynamicFeatureSelector, Report]:
    """Train, wrap, compare and follow one image."""
    if setup.model is not Model.logistic or setup.adaptation is not Adaptation.auto:
        raise InvalidInput(
            f"--model and --adaptation are for tables; {setup.data} trains a small network. Leave them out."
        )
    say(f"loading {setup.data}")
    rows = train_on_images(load_images(str(setup.data)), setup.seed, say)
    say("wrapping it")
    selector = DynamicFeatureSelector(rows.estimator, groups=GRID, random_state=setup.seed, progress=False)
    selector.fit(rows.X_train, rows.y_train)
    if isinstance(setup.budget, dict):
        raise InvalidInput("askwise demo with images buys patches; give --budget a number.")
    most = int(MOST_PATCHES if setup.budget is None else min(setup.budget, len(selector.features_)))
    found = compare(selector, rows, list(range(1, most + 1)), setup.seed, say)
    comparison = replace(found, static="middle patches first", units="patches")
    case = turning_case(comparison.trajectory, np.searchsorted(selector.classes_, rows.y_test))
    story = tell_image_story(selector, rows, comparison.trajectory, case)
    say("drawing the report")
    shown = rows.X_test[case], min(most, PATCHES_IN_FILM)
    film = svg("film", lambda label: filmstrip(selector, *shown, label=label), story.truth)
    about = [
        ("data", " ".join(rows.dataset.description.split())),
        ("images", f"{rows.split}; {GRID.rows} x {GRID.columns} patches of equal price"),
        ("model", f"small_cnn, {EPOCHS} epochs on complete images, in place of a validated network; used as it is"),
        ("seed", str(setup.seed)),
    ]
    return rows, selector, Report(f"{setup.data}, patch by patch", about, story, comparison, film)


def train_on_images(dataset: ImageDataset, seed: int, say: Callable[[str], None]) -> ImageModel:
    """A small network trained on some of the training images, and some test images."""
    rng = np.random.default_rng(seed)
    train = rng.permutation(len(dataset.y))[:MOST_TRAINING_IMAGES]
    test = rng.permutation(len(dataset.test_y))[:MOST_TEST_IMAGES]
    X_train, y_train = dataset.images[train], dataset.y[train]
    say(f"training a small network on {len(train):,} images")
    with seeded(seed):
        network = small_cnn(len(dataset.class_names), X_train.shape[1])
    network = train_classifier(network, X_train, y_train, epochs=EPOCHS, random_state=seed)
    split = f"{len(train):,} of {len(dataset.y):,} images to train, {len(test):,} of {len(dataset.test_y):,} to test"
    X_test, y_test = dataset.test_images[test], dataset.test_y[test]
    return ImageModel(dataset, "small_cnn", network, X_train, y_train, X_test, y_test, split)


def tell_image_story(selector: DynamicFeatureSelector, rows: ImageModel, trajectory: Trajectory, case: int) -> Story:
    """Image `case` of the held-out ones, step by step."""
    schema: Any = selector.schema_
    pixels = schema.encode(rows.X_test[[case]]).values[0]
    session = selector.start()
    for patch in trajectory.order[case]:
        if patch >= 0:
            session.answer(trajectory.features[patch], schema.patch(patch, pixels))
    trace = [{**step, "value": _mean(schema, step["feature"], pixels)} for step in session.report()["trace"]]
    return Story(f"Held-out image {case}", trace, int(rows.y_test[case]))


def _mean(schema: Any, feature: str | None, pixels: np.ndarray) -> str | None:
    return None if feature is None else schema.show_feature(schema.features.index(feature), pixels)
