"""Types, indexes, series and tables of pandas as nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from askwise.persistence.classes import Damaged

if TYPE_CHECKING:
    from askwise.persistence.rebuild import Rebuilder
    from askwise.persistence.record import Recorder

NAMED_TYPES = {
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
    "Float32",
    "Float64",
    "boolean",
}


def record(recorder: Recorder, value: Any, path: str) -> dict[str, Any]:
    """The node of a pandas object."""
    if value is pd.NA:
        return {"kind": "pandas", "what": "NA"}
    if isinstance(value, pd.CategoricalDtype):
        categories = recorder.record(value.categories, path)
        return {"kind": "pandas", "what": "category", "categories": categories, "ordered": bool(value.ordered)}
    if isinstance(value, pd.StringDtype):
        return {"kind": "pandas", "what": "string", "storage": value.storage, "nan": value.na_value is not pd.NA}
    if isinstance(value, pd.api.extensions.ExtensionDtype):
        if str(value) not in NAMED_TYPES:
            recorder.refuse(value, path)
        return {"kind": "pandas", "what": "dtype", "name": str(value)}
    if isinstance(value, pd.RangeIndex):
        steps = [value.start, value.stop, value.step]
        return {"kind": "pandas", "what": "range", "steps": steps, "name": recorder.record(value.name, path)}
    if isinstance(value, pd.MultiIndex | pd.DatetimeIndex | pd.PeriodIndex | pd.TimedeltaIndex | pd.IntervalIndex):
        recorder.refuse(value, path)
    if isinstance(value, pd.DataFrame):
        parts = [recorder.record(value[label], path) for label in value.columns]
        return {"kind": "pandas", "what": "frame", "columns": recorder.record(value.columns, path), "parts": parts}
    node = {"kind": "pandas", "what": "series" if isinstance(value, pd.Series) else "index"}
    node |= {"dtype": recorder.record(value.dtype, path), "name": recorder.record(value.name, path)}
    cells = np.empty(len(value), dtype=object)
    cells[:] = value.tolist()
    node["cells"] = recorder.record(cells, path)
    if isinstance(value, pd.Series):
        node["index"] = recorder.record(value.index, path)
    return node


def rebuild(rebuilder: Rebuilder, node: dict[str, Any]) -> Any:
    """The pandas object of a node."""
    what = node["what"]
    if what == "NA":
        return pd.NA
    if what == "category":
        return pd.CategoricalDtype(rebuilder.value(node["categories"]), ordered=bool(node["ordered"]))
    if what == "string":
        return pd.StringDtype(node["storage"], na_value=np.nan if node["nan"] else pd.NA)
    if what == "dtype" and node["name"] in NAMED_TYPES:
        return pd.api.types.pandas_dtype(node["name"])
    if what == "range":
        start, stop, step = map(int, node["steps"])
        return pd.RangeIndex(start, stop, step, name=rebuilder.value(node["name"]))
    if what == "frame":
        parts = [rebuilder.value(part) for part in node["parts"]]
        table = pd.concat(parts, axis=1) if parts else pd.DataFrame()
        return table.set_axis(rebuilder.value(node["columns"]), axis=1)
    if what in ("series", "index"):
        cells, dtype, name = (rebuilder.value(node[part]) for part in ("cells", "dtype", "name"))
        if what == "index":
            return pd.Index(cells, dtype=dtype, name=name)
        return pd.Series(cells, index=rebuilder.value(node["index"]), dtype=dtype, name=name)
    raise Damaged(f"there is no pandas object {what!r}")
