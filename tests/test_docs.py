"""What the documents say is true: the import graph is the present one, and the examples for contributors run."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from askwise import DynamicFeatureSelector, InvalidInput, Prices
from askwise.errors import PAGES, page_of

ROOT = Path(__file__).parents[1]


def import_graph():
    spec = importlib.util.spec_from_file_location("import_graph", ROOT / "docs" / "import_graph.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_import_graph_is_the_present_one():
    page = (ROOT / "docs" / "project" / "architecture.md").read_text(encoding="utf-8")
    assert import_graph().page_with_graph(page) == page, "run python docs/import_graph.py"


def test_every_package_has_a_paragraph():
    page = (ROOT / "docs" / "project" / "architecture.md").read_text(encoding="utf-8").split("## Packages")[1]
    for package in import_graph().packages():
        assert f"**{package}**" in page


def test_the_examples_for_contributors_run():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    data = names["load_iris"]()
    model = LogisticRegression(max_iter=1000).fit(data.X, data.y)
    predictor, policy = names["MedianPredictor"](model), names["CheapestFirst"]()
    selector = DynamicFeatureSelector(model, costs=data.prices, adaptation=predictor, policy=policy, epistemic=None)
    selector.fit(data.X, data.y)
    run = selector.acquire(data.X, budget=2)
    assert set(np.unique(run.order)) == {2, 3}  # the petals, which are cheaper
    assert len(load_iris().feature_names) == len(selector.features_)


def test_the_glossary_has_twenty_five_words_once_each():
    rows = re.findall(
        r"^\| ([^|]+) \|", (ROOT / "docs" / "understand" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    words = [row.strip() for row in rows[1:] if row.strip("- ")]
    assert len(words) == len(set(words)) == 25


def test_errors_name_the_page_that_explains_them():
    explained = (ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
    for _, page in PAGES:
        assert (ROOT / "docs" / page).exists(), page
        assert page.split("/")[1] in explained, page
    with pytest.raises(InvalidInput) as raised:
        Prices([-1.0]).resolve(["age"])
    assert raised.value.__notes__ == ["The guide explains it: docs/howto/prices.md"]
    with pytest.raises(InvalidInput) as raised:
        DynamicFeatureSelector(LogisticRegression(), random_state=-1).fit(*load_iris(return_X_y=True))
    assert not hasattr(raised.value, "__notes__")  # no page is better than a wrong one
    assert page_of("error_costs must name every class") == "howto/error-costs.md"
