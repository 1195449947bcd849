"""From the files of a user to a fitted selector and its desk."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from askwise.cli.options import Reading
from askwise.cli.own_files import advising_options, read_cases, read_groups, read_labeled
from askwise.cli.price_list import read_price_list
from askwise.cli.user_table import load_user_table
from askwise.errors import InvalidInput, listed
from askwise.options import AdaptationName
from askwise.persistence.model_file import read_model
from askwise.progress import interruptible
from askwise.selector import DynamicFeatureSelector
from askwise.table.constraints import house_rules, read_rules
from askwise.table.desk import Desk
from askwise.table.prices import Prices
from askwise.table.reading import garbled, read_table
from askwise.table.schema import read_table as read_schema


class Fitting:
    """The training table with its prices; wraps a model with them.

    Parameters
    ----------
    path, target, reading
        The table, the column that holds the class, and how to read it.
    prices, groups, rules
        The price list, the groups of columns and the rules of the house, if there are any.
    """

    def __init__(
        self,
        path: Path,
        target: str,
        reading: Reading,
        prices: Path | None,
        groups: Path | None,
        rules: Path | None = None,
    ) -> None:
        self.target, self.reading = target, reading
        self.dataset, encoding = load_user_table(path, target, reading)
        self.groups = read_groups(groups)
        schema = read_schema(self.dataset.X, self.groups)[0]
        self.rules = None if rules is None else read_rules(rules)
        try:
            house_rules(self.rules, schema)
        except InvalidInput as error:
            raise InvalidInput(f"{rules}: {error}") from None
        self.prices, desk = Prices(), Desk()
        if prices is not None:
            self.prices, desk = read_price_list(prices, schema, {target, *(reading.drop or ())}, encoding)
        self.desk = replace(desk, target=target, encoding=encoding)

    def load(self, path: Path, classes: str | None, trusted: Sequence[str]) -> Any:
        """The model of a file; the columns of the table are put in the order that it knows."""
        named = None if classes is None else [name.strip() for name in classes.split(",")]
        try:
            model = read_model(path, self.dataset.y, named, trusted)
        except InvalidInput as error:
            raise InvalidInput(advising_options(error)) from None
        if not hasattr(model, "predict_proba"):
            raise InvalidInput(
                f"{path} holds a {type(model).__name__}, which gives no probabilities; a classifier must."
            )
        known = _columns_of(model)
        if known is not None:
            self._order_columns(path, known)
        return model

    def fitted(self, estimator: Any, adaptation: str, budget: Any, seed: int) -> DynamicFeatureSelector:
        """The selector around a model."""
        selector = DynamicFeatureSelector(
            estimator,
            costs=self.prices,
            groups=self.groups,
            adaptation=cast("AdaptationName", adaptation),  # checked by fit
            budget=budget,
            constraints=self.rules,
            random_state=seed,
            progress="auto",
        )
        with warnings.catch_warnings(), interruptible():
            warnings.simplefilter("ignore", ConvergenceWarning)
            selector.fit(self.dataset.X, self.dataset.y)
        return selector

    def calibrate(
        self, selector: DynamicFeatureSelector, path: Path, agreement: float, per_class: bool | str = "auto"
    ) -> None:
        """Calibrate when to stop on the rows of a file, with their labels if it has them."""
        desk = Desk.of(selector, self.desk)
        options = replace(self.reading.table, usual_encoding=desk.encoding)
        labeled = self.target in read_table(path, options).frame.columns
        cases = read_cases(path, selector, desk, self.reading, keep=[self.target] if labeled else [])
        given = cases.pop(self.target) if labeled else None
        labels = None if given is None or given.isna().any() else given.to_numpy(dtype=selector.classes_.dtype)
        try:
            selector.calibrate_stop(cases, labels, agreement=agreement, per_class=per_class)
        except InvalidInput as error:
            said = str(error).replace("calibrate_stop", "--calibrate").replace("y_cal", f"the column {self.target!r}")
            said = said.replace("per_class='auto'", "--per-class auto")
            raise InvalidInput(said.replace("X_cal", f"--calibrate {path}")) from None

    def calibrate_handover(self, selector: DynamicFeatureSelector, path: Path, accuracy: float) -> None:
        """Calibrate which cases to hand to a person on the labeled rows of a file."""
        desk = Desk.of(selector, self.desk)
        cases, labels = read_labeled(path, selector, desk, self.reading, self.target)
        try:
            selector.calibrate_handover(cases, labels, accuracy=accuracy)
        except InvalidInput as error:
            said = str(error).replace("calibrate_handover", "--handover").replace("calibrate_stop", "--calibrate")
            raise InvalidInput(said.replace("X_cal", f"--handover {path}")) from None

    def _order_columns(self, path: Path, known: Sequence[str]) -> None:
        given = list(map(str, self.dataset.X.columns))
        missing = [name for name in known if name not in given]
        extra = [name for name in given if name not in known]
        if missing or extra:
            raise InvalidInput(
                f"The model {path} was trained on other columns than the table has. Missing: "
                f"{listed(missing) or 'none'}; not known to the model: {listed(extra) or 'none'} (leave them out with "
                f"--drop).{garbled(missing, extra)}"
            )
        self.dataset = replace(self.dataset, X=self.dataset.X[list(known)])


def _columns_of(model: Any) -> list[str] | None:
    """The names of the columns that a model was trained on; None where it does not know."""
    booster = getattr(getattr(model, "function", None), "names", None)
    found = getattr(model, "feature_names_in_", booster)
    return None if found is None else [str(name) for name in np.asarray(found).tolist()]
