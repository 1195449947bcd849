"""A case as a filmstrip: the image patch by patch, with class probabilities and uncertainties below each picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput
from askwise.images.grid import ImageSchema
from askwise.trajectory import Trajectory

HIDDEN, NEW, LIKELY, OTHER = (0.82, 0.85, 0.90), "#d1495b", "#2d6a8e", "#b8c4d0"
STYLES: dict[str, dict[str, Any]] = {"total": {"linewidth": 4, "alpha": 0.25, "markersize": 0}}
"""The total is almost the aleatoric part, which is drawn on top of it."""

TRUST = {"total": "#30343f", "aleatoric": "#2d6a8e", "epistemic": "#d1495b"}


def filmstrip(
    selector: FeatureAcquirer,
    image: Any,
    budget: float | None = None,
    *,
    label: Any = None,
    path: str | Path | None = None,
) -> Any:
    """A matplotlib figure of one image as its patches are acquired.

    Parameters
    ----------
    selector
        A `DynamicFeatureSelector` or a baseline, fitted on images.
    image
        (C, H, W), as in `fit`: the complete image.
    budget
        As in `acquire`.
    label
        The true class, whose bar is marked.
    path
        File to save the figure to; its extension sets the format.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from askwise import DynamicFeatureSelector
    >>> from askwise.vision import PatchGrid, filmstrip, small_cnn, train_classifier
    >>> digits = load_digits()
    >>> images, y = digits.images[:300, None] / 16, digits.target[:300]
    >>> net = train_classifier(small_cnn(10), images, y, epochs=1, random_state=0)
    >>> selector = DynamicFeatureSelector(net, groups=PatchGrid(2, 2), random_state=0).fit(images, y)
    >>> figure = filmstrip(selector, images[0], budget=2, label=y[0])
    >>> len(figure.axes) > 2
    True
    """
    from matplotlib.figure import Figure

    schema = selector.schema_
    if not isinstance(schema, ImageSchema):
        raise InvalidInput("filmstrip needs a selector that was fitted on images (groups=PatchGrid(...)).")
    truth = np.asarray(image)[None]
    run = selector.acquire(truth, budget)
    figure = Figure(figsize=(1.5 * (run.n_steps + 1) + 0.6, 4.6), layout="constrained")
    axes = figure.subplots(3, run.n_steps + 1, squeeze=False, height_ratios=[1.2, 1.2, 0.8], sharey="row")
    pixels = _as_picture(schema.encode(truth).values[0].reshape(schema.shape))
    for step in range(run.n_steps + 1):
        _draw_image(axes[0, step], schema, pixels, run, step)
        _draw_classes(axes[1, step], run, step, label)
    _draw_trust(figure, axes[2], run)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _as_picture(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) in [0, 1]; a gray image three times."""
    low, high = np.nanmin(image), np.nanmax(image)
    scaled = (image - low) / (high - low if high > low else 1.0)
    return np.moveaxis(scaled if len(image) == 3 else np.repeat(scaled[:1], 3, axis=0), 0, -1)


def _draw_image(axis: Any, schema: ImageSchema, pixels: np.ndarray, run: Trajectory, step: int) -> None:
    from matplotlib.patches import Rectangle

    shown = schema.expand(run.mask_after(step)).reshape(schema.shape)[0]
    axis.imshow(np.where(shown[..., None], pixels, HIDDEN), interpolation="none")
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    if step == 0:
        axis.set_title("nothing yet", fontsize=9)
        return
    bought = int(run.order[0, step - 1])
    _, height, width = schema.patch_shape
    row, column = divmod(bought, schema.grid.columns)
    corner = (column * width - 0.5, row * height - 0.5)
    axis.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=NEW, linewidth=2))
    axis.set_title(f"{step}. {schema.features[bought].removeprefix('patch ')}", fontsize=9)


def _draw_classes(axis: Any, run: Trajectory, step: int, label: Any) -> None:
    proba = run.proba[0, step]
    names = [str(name) for name in run.classes]
    colors = [LIKELY if c == proba.argmax() else OTHER for c in range(len(proba))]
    bars = axis.barh(range(len(proba)), proba, color=colors)
    if label is not None and str(label) in names:
        bars[names.index(str(label))].set(edgecolor=NEW, linewidth=1.5)
    axis.set(xlim=(0, 1), yticks=range(len(names)), xticks=[0, 1])
    axis.set_ylim(len(proba) - 0.4, -0.6)  # the first class on top
    axis.set_yticklabels(names, fontsize=7)
    axis.set_xticklabels([])
    axis.tick_params(length=0)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.spines["left"].set_color(OTHER)
    predicted = names[int(proba.argmax())]
    wrong = label is not None and predicted != str(label)
    axis.set_xlabel(f"{predicted}: {proba.max():.0%}", fontsize=9, color=NEW if wrong else LIKELY, fontweight="bold")


def _draw_trust(figure: Any, axes: Any, run: Trajectory) -> None:
    """One plot over the whole width instead of the last row."""
    grid = axes[0].get_gridspec()
    for axis in axes:
        axis.remove()
    axis = figure.add_subplot(grid[2, :])
    steps = np.arange(run.n_steps + 1)
    for name, values in run.uncertainty.as_dict().items():
        if name in TRUST and np.isfinite(values[0]).all():
            style = {"marker": "o", "markersize": 3, "color": TRUST[name], **STYLES.get(name, {})}
            axis.plot(steps, values[0], label=name, **style)
    axis.set(xlim=(-0.5, run.n_steps + 0.5), xticks=steps, ylim=(0, None))
    axis.set_ylabel("uncertainty, nats", fontsize=8)
    axis.set_xlabel("patches bought", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.legend(fontsize=7, frameon=False, loc="upper right")
    axis.spines[["top", "right"]].set_visible(False)
