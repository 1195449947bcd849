"""Every example in a docstring runs and says what it says."""

import doctest
import importlib
import pkgutil

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


def test_examples_are_found():
    """The search itself works: these have examples."""
    for name in ("askwise.table.prices", "askwise.table.subsets", "askwise.uncertainty", "askwise.selector"):
        assert examples(name), f"{name} has no examples"
