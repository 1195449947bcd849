"""Every example in a docstring runs and says what it says."""

import doctest
import importlib
import inspect
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


PUBLIC = [
    "askwise",
    *(f"askwise.{name}" for name in sorted(askwise._MODULES)),
    "askwise.case",
    "askwise.evaluation",
    "askwise.explain",
    "askwise.persistence",
    "askwise.scale",
    "askwise.value",
]


def exported(module):
    """The public classes and functions of a module: those of `__all__`, or else those that it defines."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in found.items() if inspect.isclass(value) or inspect.isfunction(value)}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_exported_name_has_an_example(name):
    """They run with those of the module in which the name is defined."""
    names = exported(importlib.import_module(name))
    assert names
    assert not [each for each, value in names.items() if ">>>" not in (value.__doc__ or "")]


def test_examples_are_found():
    """The search itself works: these have examples."""
    for name in ("askwise.table.prices", "askwise.table.subsets", "askwise.uncertainty", "askwise.selector"):
        assert examples(name), f"{name} has no examples"
