"""Gaussian data and a baseline trained on it, by what a test module says: GAUSSIAN, KIND, FAST and N_TRAINED."""

from typing import Any

import pytest

from askwise.datasets import make_gaussian


@pytest.fixture(scope="module")
def gaussian(request):
    return make_gaussian(**request.module.GAUSSIAN, random_state=0)


@pytest.fixture(scope="module")
def fitted(request, gaussian):
    module: Any = request.module
    n_trained = getattr(module, "N_TRAINED", None)
    return module.KIND(**module.FAST, random_state=0).fit(gaussian.X[:n_trained], gaussian.y[:n_trained])
