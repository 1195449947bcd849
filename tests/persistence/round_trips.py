"""Whether what is loaded equals what was saved."""

import json

import numpy as np
import pandas as pd
from tests.persistence import cases
from tests.persistence.layout import version_of

import askwise
from askwise.stopping import CalibratedStop


def classes_that_come_back(families, folder):
    """Save, load and compare every fitted object of `families`; the names of all classes that were saved."""
    import torch

    seen = set()
    for path, saved in (one for family in families for one in family()):
        with torch.random.fork_rng():
            saved.save(folder / "saved")
            loaded = askwise.load(folder / "saved")
        assert type(loaded) is type(saved)
        same(saved, loaded, some_rows(saved), path)
        nodes = json.loads((version_of(folder / "saved") / "state.json").read_text())["nodes"]
        seen |= {node["class"].rpartition(".")[2] for node in nodes if "class" in node}
    return seen


def same(saved, loaded, X, path):
    """Both give the same answers, and the same session."""
    np.testing.assert_array_equal(loaded.predict_proba(X), saved.predict_proba(X), err_msg=path)
    np.testing.assert_array_equal(loaded.suggest(X, budget=2), saved.suggest(X, budget=2), err_msg=path)
    runs = [one.acquire(X, budget=2, stop=getattr(one, "stop_", None)) for one in (saved, loaded)]
    for part in ("order", "costs", "proba"):
        np.testing.assert_array_equal(getattr(runs[0], part), getattr(runs[1], part), err_msg=path)
    pd.testing.assert_frame_equal(runs[0].to_frame(), runs[1].to_frame(), check_exact=True, obj=path)
    trust = [one.uncertainty(X).as_dict() for one in (saved, loaded)]
    for name in trust[0]:
        np.testing.assert_array_equal(trust[0][name], trust[1][name], err_msg=f"{path} {name}")
    reports = [one.start(budget=3).report() for one in (saved, loaded)]
    assert json.dumps(reports[0]) == json.dumps(reports[1]), path
    for part in ("stop_", "handover_"):
        rules = [getattr(one, part, None) for one in (saved, loaded)]
        assert type(rules[0]) is type(rules[1]), path
        for name in ("promise", "by_class", "reason"):
            assert repr(getattr(rules[0], name, None)) == repr(getattr(rules[1], name, None)), path
    if isinstance(saved.stop_, CalibratedStop):
        reports = [one.start(budget=2, stop="calibrated").report() for one in (saved, loaded)]
        assert json.dumps(reports[0]) == json.dumps(reports[1]), path


def some_rows(selector):
    """New rows of the kind the selector takes, with cells missing."""
    rng = np.random.default_rng(7)
    if not selector.schema_.tabular:
        images = rng.random((6, 1, 8, 8)).astype(np.float32)
        images[:, :, :4, 4:] = np.nan
        return images
    made = cases.make_mixed(8, 3)[0] if selector.schema_.is_category.any() else cases.make_rows(8, 3)[0]
    hidden = made.assign(a=made["a"].mask(rng.random(8) < 0.5), b=made["b"].mask(rng.random(8) < 0.5))
    if not selector.schema_.framed:
        return hidden.to_numpy()
    return hidden.set_axis([column.label for column in selector.schema_.columns], axis=1)
