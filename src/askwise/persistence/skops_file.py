"""scikit-learn estimators as a skops file, which is checked from outside before skops reads it.

skops makes only objects of trusted types, but the sizes in its zip archive, the kinds of its nodes and the numbers in a
tree are the file's own word. So nothing is decompressed or made before they have been checked here.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from askwise.errors import AskwiseError, InvalidInput
from askwise.persistence.classes import registered_functions
from askwise.persistence.strict_json import read_json
from askwise.persistence.tree_checks import check_trees, rebuild_search_trees

PROTOCOL = 2
MOST_ENTRIES = 1_000_000
DEEPEST = 400
ENTRY = re.compile(r"schema\.json|\d+\.(npy|bin)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.bin")
LOADERS = {
    "BytearrayNode",
    "BytesNode",
    "ConstructorFromReduceNode",
    "DTypeNode",
    "DefaultDictNode",
    "DictNode",
    "FunctionNode",
    "JsonNode",
    "ListNode",
    "LossNode",
    "NdArrayNode",
    "ObjectNode",
    "PartialNode",
    "RandomGeneratorNode",
    "RandomStateNode",
    "SetNode",
    "SliceNode",
    "TreeNode",
    "TupleNode",
    "TypeNode",
}
"""Kinds of nodes that fitted estimators consist of. Methods and operators are not among them."""

TYPES = {
    "askwise.reference_models._as_objects",
    "functools.partial",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.impute._iterative._ImputerTriplet",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.multiclass._ConstantPredictor",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
}
"""What fitted classifiers hold beyond the types that skops trusts; `tree_checks` looks at the numbers in trees."""


BOOSTING = {
    "catboost.core.CatBoostClassifier",
    "collections.OrderedDict",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRFClassifier",
}
"""Classifiers of the boosting libraries: their state is parameters, and trees in a format that the library reads."""


def import_skops() -> Any:
    """The module `skops.io`; if it is not installed, an error that names the extra."""
    try:
        import skops.io
    except ImportError:
        raise AskwiseError(
            'Saving and loading scikit-learn models needs skops: pip install "askwise[persistence]".'
        ) from None
    return skops.io


def write_models(models: Sequence[Any]) -> bytes:
    """The estimators as one skops file, in which what they share is written once."""
    skops = import_skops()
    try:
        content: bytes = skops.dumps(list(models), compression=ZIP_STORED)
    except Exception as error:  # skops passes on whatever the objects of other packages raise
        names = sorted({type(model).__name__ for model in models})
        raise InvalidInput(f"{', '.join(names)}: skops cannot write one of these models ({error}).") from error
    content = _reproducible(content)
    check_file(content, "models.skops")
    return content


def _reproducible(content: bytes) -> bytes:
    """A skops file without addresses in memory, random names and the time of writing: equal models, equal bytes."""
    with ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(entries.pop("schema.json"))
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}
    for node in _nodes(schema):
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
        if "file" in node:
            kind = node["file"].rpartition(".")[2]
            node["file"] = names.setdefault(node["file"], f"{len(names) + 1}.{kind}")
    files = {names[name]: entries[name] for name in names} | {"schema.json": json.dumps(schema, indent=2).encode()}
    written = io.BytesIO()
    with ZipFile(written, "w", ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(ZipInfo(name), data)  # dated 1980
    return written.getvalue()


def _known_types() -> set[str]:
    return TYPES | BOOSTING | registered_functions()


def needed_types(content: bytes) -> list[str]:
    """Types in a checked skops file that neither skops nor askwise trusts."""
    return sorted(set(import_skops().get_untrusted_types(data=content)) - _known_types())


def read_models(content: bytes, name: str, trusted: Iterable[str], several: bool = True) -> list[Any]:
    """The estimators of a skops file, after the checks; if not `several`, the one that it holds."""
    check_file(content, name)
    skops = import_skops()
    found = _tried(skops.get_untrusted_types, name, data=content)
    unknown = sorted(set(found) - _known_types() - set(trusted))
    if unknown:
        raise InvalidInput(
            f"{name} holds objects of types that askwise does not know: {', '.join(unknown)}. If you trust them, and "
            f"who made the file, name them: askwise.load(folder, trusted={unknown!r})."
        )
    models = _tried(skops.loads, name, content, trusted=found)
    models = models if several else [models]
    if not isinstance(models, list):
        raise InvalidInput(f"{name} holds a {type(models).__name__} where a list of models was expected.")
    check_trees(models)
    rebuild_search_trees(models)
    return models


def _tried(read: Callable[..., Any], name: str, *given: Any, **options: Any) -> Any:
    """What a function of skops returns; whatever it raises is the file's fault."""
    try:
        return read(*given, **options)
    except Exception as error:
        raise InvalidInput(f"{name} cannot be read by skops ({type(error).__name__}: {error}).") from error


def check_file(content: bytes, name: str) -> None:
    """Refuse a skops file whose sizes, names or nodes are not those of one that `write_models` makes."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            _check_entries(entries, len(content), name)
            schema = read_json(archive.read("schema.json"), f"{name}: schema.json", DEEPEST)
            for entry in entries:
                if entry.filename.endswith(".npy"):
                    _check_array(archive.read(entry), f"{name}: {entry.filename}")
    except InvalidInput:
        raise
    except (BadZipFile, EOFError, OSError, KeyError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{name} is not a skops file ({error}); it is damaged.") from None
    if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL:
        raise InvalidInput(f"{name} does not follow protocol {PROTOCOL} of skops; save the selector again.")
    files = {entry.filename for entry in entries}
    for node in _nodes(schema):
        if node["__loader__"] not in LOADERS:
            raise InvalidInput(f"{name} holds a {str(node['__loader__'])[:60]}, which fitted estimators do not have.")
        if "file" in node and node["file"] not in files:
            raise InvalidInput(f"{name} refers to {str(node['file'])[:60]!r}, which it does not hold.")


def _check_entries(entries: Sequence[Any], size: int, name: str) -> None:
    if len(entries) > MOST_ENTRIES or len({entry.filename for entry in entries}) < len(entries):
        raise InvalidInput(f"{name} holds too many entries, or two of the same name.")
    for entry in entries:
        if not ENTRY.fullmatch(entry.filename):
            raise InvalidInput(f"{name} holds an entry {entry.filename[:60]!r}, which skops does not write.")
        if entry.compress_type != ZIP_STORED or entry.compress_size != entry.file_size or entry.flag_bits & 1:
            raise InvalidInput(f"{name} is compressed or encrypted, and askwise does not write it so.")
    if sum(entry.file_size for entry in entries) > size:
        raise InvalidInput(f"{name} declares more content than it holds.")


def _check_array(content: bytes, name: str) -> None:
    """An array must hold what its header declares; objects, which would be pickles, are refused."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{name} is not an array ({error}).") from None
    declared = dtype.itemsize * int(np.prod([int(size) for size in shape], dtype=object))
    if dtype.hasobject or declared != len(content) - stream.tell():
        raise InvalidInput(f"{name} declares {declared} bytes of {dtype}, and holds {len(content) - stream.tell()}.")


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every node of a schema, without recursion."""
    open_values = [schema]
    while open_values:
        value = open_values.pop()
        if isinstance(value, dict):
            if "__loader__" in value:
                yield value
            open_values.extend(value.values())
        elif isinstance(value, list):
            open_values.extend(value)
