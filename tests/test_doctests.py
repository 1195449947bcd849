"""Every example in a docstring runs and says what it says."""

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
from pathlib import Path

import pytest

import askwise
import askwise_bench

MODULES = [
    *("askwise", *(found.name for found in pkgutil.walk_packages(askwise.__path__, "askwise."))),
    *("askwise_bench", *(found.name for found in pkgutil.walk_packages(askwise_bench.__path__, "askwise_bench."))),
]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples(name):
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module, name) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    report: list[str] = []
    for test in examples(name):
        runner.run(test, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)


def pages():
    """What writes a page of the site for each public name."""
    path = Path(__file__).parents[1] / "docs" / "_ext" / "api_pages.py"
    spec = importlib.util.spec_from_file_location("api_pages", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_name_that_has_a_page_has_an_example():
    """They run with those of the module in which the name is defined; the pages have every exported name."""
    api, bare, counted = pages(), [], 0
    for name in api.PUBLIC:
        module = importlib.import_module(name)
        for item in api.names_of(module):
            thing = getattr(module, item)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                counted += 1
                bare += [f"{name}.{item}"] if ">>>" not in (thing.__doc__ or "") else []
    assert not bare
    assert counted > 150


def test_examples_are_found():
    """The search itself works: these have examples."""
    for name in ("askwise.table.prices", "askwise.table.subsets", "askwise.uncertainty", "askwise.selector"):
        assert examples(name), f"{name} has no examples"
