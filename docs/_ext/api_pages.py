"""A page for every public module, and on it a page for each name, written before the site is read."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

PUBLIC = {
    "askwise": "The selector",
    "askwise.case": "One case",
    "askwise.trajectory": "A run over many cases",
    "askwise.stopping": "When to stop, and whom to hand over",
    "askwise.displays": "Pictures",
    "askwise.predict": "Predicting from what is known",
    "askwise.epistemic": "Members around the model",
    "askwise.value": "What a feature is worth",
    "askwise.policy": "What to acquire next",
    "askwise.constraints": "Rules of the house",
    "askwise.explain": "Flowcharts",
    "askwise.trees": "Rules and trees",
    "askwise.vision": "Images",
    "askwise.datasets": "Data",
    "askwise.uncertainty": "Measures of uncertainty",
    "askwise.metrics": "Metrics",
    "askwise.acquisition": "The state and the loop",
    "askwise.evaluation": "Evaluation under budgets",
    "askwise.table.desk": "Labels, units, ranges",
    "askwise.scale": "Tables larger than memory",
    "askwise.persistence": "Saving and loading",
    "askwise.integrations.mlflow": "MLflow",
    "askwise.errors": "Errors",
    "askwise_bench.baselines": "Other methods, to compare with",
}


ONLY = {
    "askwise.acquisition": ["Acquisition", "PolicyMasks", "run_episodes"],
    "askwise.errors": ["AskwiseError", "AskwiseWarning", "InvalidInput"],
    "askwise.evaluation": ["default_budgets", "final_states"],
    "askwise.integrations.mlflow": ["IncompleteRows", "load_model", "log_model", "save_model"],
}
"""The part of a module without `__all__` that is for users; of the others, all classes and functions."""


def names_of(module: ModuleType) -> list[str]:
    """What the module offers."""
    listed = getattr(module, "__all__", None) or ONLY.get(module.__name__)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    ]


def page(name: str, title: str) -> str:
    module = importlib.import_module(name)
    kinds: dict[str, list[str]] = {"class": [], "function": [], "data": []}
    for item in sorted(names_of(module), key=str.lower):
        thing = getattr(module, item)
        kinds["class" if inspect.isclass(thing) else "function" if callable(thing) else "data"].append(item)
    heading = f"{title}: ``{name}``"
    lines = [heading, "=" * len(heading), "", f".. automodule:: {name}", "   :no-members:", ""]
    lines += [f".. currentmodule:: {name}", ""]
    for kind in ("class", "function"):
        if kinds[kind]:
            lines += [".. autosummary::", "   :toctree: names", "   :nosignatures:", f"   :template: {kind}.rst", ""]
            lines += [f"   {item}" for item in kinds[kind]] + [""]
    for item in kinds["data"]:
        lines += [f".. autodata:: {item}", ""]
    return "\n".join(lines)


def write(app: Any, config: Any) -> None:
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    for name, title in PUBLIC.items():
        keep(folder / f"{name}.rst", page(name, title))
    lines = ["Python", "======", "", "Every public module; what it offers is on its page.", ""]
    lines += [".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in PUBLIC), ""]
    keep(folder / "index.rst", "\n".join(lines))


def keep(path: Path, text: str) -> None:
    """Write `text` unless it is there already, so that an unchanged page is not read again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", write)  # before Sphinx lists the pages, and autosummary reads them
    return {"parallel_read_safe": True, "parallel_write_safe": True}
