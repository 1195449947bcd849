"""A selector that was logged answers as it did before, through MLflow's own ways of running a model."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from askwise import DynamicFeatureSelector, InvalidInput
from askwise.errors import AskwiseError, AskwiseWarning
from askwise.scale import engines

mlflow = pytest.importorskip("mlflow", reason='MLflow is not installed: pip install "askwise[mlflow]"')
pytest.importorskip("mlflow.pyfunc")

from askwise.integrations.mlflow import FOLDER, load_model, log_model, save_model  # noqa: E402

N = 60


def table(seed):
    """Numbers, text, a boolean and a group; of every other cell nothing is known."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 80, N).astype(float),
            "city": rng.choice(["Ghent", "Lille", "Namur"], N),
            "smoker": rng.random(N) < 0.4,
            "iron": rng.normal(size=N).round(2),
            "zinc": rng.normal(size=N).round(2),
        }
    )
    return X, np.where((X["age"] > 50) ^ X["smoker"], "ill", "well")


@pytest.fixture(scope="module")
def selector():
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X, y = table(0)
    columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    options: dict[str, Any] = {"groups": {"blood": ["iron", "zinc"]}, "costs": {"blood": 7.0}, "calibration": None}
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    found = DynamicFeatureSelector(model, epistemic=None, random_state=0, progress=False, **options).fit(X, y)
    found.calibrate_stop(*table(1), agreement=0.7)
    return found


@pytest.fixture(scope="module")
def logged(selector, tmp_path_factory):
    """A model logged and registered in a tracking store of its own."""
    place = tmp_path_factory.mktemp("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    wards = mlflow.create_experiment("wards", artifact_location=(place / "artifacts").as_uri())
    with mlflow.start_run(experiment_id=wards):  # set_experiment would stay in force for other tests
        yield log_model(selector, registered_model_name="ward")
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def cases():
    X, _ = table(2)
    hidden = np.random.default_rng(3).random(X.shape) < 0.5
    return X.astype(object).mask(hidden, None).astype({"age": float, "iron": float, "zinc": float})


def test_what_is_loaded_is_the_selector(selector, logged, cases):
    again = load_model("models:/ward/1")
    np.testing.assert_array_equal(again.predict_proba(cases), selector.predict_proba(cases))
    model = mlflow.pyfunc.load_model(logged.model_uri)

    def asked(method, **params):
        return model.predict(cases, params={"method": method, **params})

    pd.testing.assert_frame_equal(asked("predict_proba"), model.predict(cases))
    assert list(model.predict(cases)) == ["ill", "well"]
    np.testing.assert_array_equal(model.predict(cases), selector.predict_proba(cases))
    assert asked("predict").tolist() == selector.predict(cases).tolist()
    next_ones = selector.suggest(cases, budget=3.0)
    assert asked("suggest", budget=3.0).tolist() == [selector.features_[i] if i >= 0 else "" for i in next_ones]
    assert -1 in next_ones
    for params in ({"budget": 3.0}, {"stop": "calibrated"}, {}):
        found = asked("acquire", **params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AskwiseWarning)  # the table says of each case whether the promise holds
            run = selector.acquire(cases, **params)
        assert found["spent"].tolist() == run.costs.sum(axis=1).tolist()
        assert found["prediction"].tolist() == run.predict().tolist()
        assert ("guaranteed" in found) == ("stop" in params)


def test_a_column_that_is_not_there_is_not_known(selector, logged, cases):
    model = mlflow.pyfunc.load_model(logged.model_uri)
    found = model.predict(cases[["city", "age"]])
    np.testing.assert_array_equal(found, selector.predict_proba(cases.assign(smoker=None, iron=np.nan, zinc=np.nan)))
    example = model.input_example
    assert example.isna().any(axis=None)
    np.testing.assert_array_equal(model.predict(example), selector.predict_proba(example))


def test_what_is_written_holds_no_code_and_names_what_it_needs(logged):
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=logged.model_uri))
    assert not [path for path in folder.rglob("*") if path.suffix in (".pkl", ".pickle", ".py", ".joblib")]
    assert (folder / "data" / FOLDER / "manifest.json").is_file()
    needed = (folder / "requirements.txt").read_text()
    assert "askwise[persistence]==" in needed
    assert "scikit-learn==" in needed
    assert "torch" not in needed


def test_bad_input(selector, logged, cases, tmp_path):
    model = mlflow.pyfunc.load_model(logged.model_uri)
    with pytest.raises(InvalidInput, match=r"method must be one of .* got 'suggets'"):
        model.predict(cases, params={"method": "suggets"})
    with pytest.raises(InvalidInput, match="budget"):
        model.predict(cases, params={"method": "acquire", "budget": -1.0})
    mlflow.pyfunc.save_model(tmp_path / "other", loader_module="mlflow", signature=False, pip_requirements=[])
    with pytest.raises(InvalidInput, match="was not logged by askwise; its flavors are: python_function"):
        load_model(str(tmp_path / "other"))
    X, y = load_iris(return_X_y=True)
    function = DynamicFeatureSelector(GaussianNB().fit(X, y).predict_proba, epistemic=None, random_state=0).fit(X, y)
    with pytest.raises(InvalidInput, match=r"without being told anything.*load it with askwise.load"):
        save_model(function, tmp_path / "function")


def test_arrays_have_the_names_of_their_columns(tmp_path):
    X, y = load_iris(return_X_y=True)
    found = DynamicFeatureSelector(GaussianNB().fit(X, y), epistemic=None, random_state=0).fit(X, y)
    save_model(found, tmp_path / "model", rows="synthetic")
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    some = pd.DataFrame({"x2": X[:5, 2]})
    hidden = np.full_like(X[:5], np.nan)
    hidden[:, 2] = X[:5, 2]
    np.testing.assert_array_equal(model.predict(some), load_model(str(tmp_path / "model")).predict_proba(hidden))
    with pytest.raises(InvalidInput, match="has none of the columns of fit: x0, x1, x2, x3"):
        model.predict(X[:5])  # MLflow itself drops columns without a name


def test_spark_runs_what_is_logged(selector, logged, cases):
    """`spark_udf`, and `mapInPandas` with the loaded model."""
    pytest.importorskip("pyspark", reason='PySpark is not installed: pip install "askwise[spark]"')
    try:
        engines.import_pyspark()
    except AskwiseError as error:
        pytest.skip(str(error))
    from pyspark.sql.functions import struct

    uri = str(Path(mlflow.artifacts.download_artifacts(artifact_uri=logged.model_uri)))
    kinds = "age double, city string, smoker boolean, iron double, zinc double"
    given = cases.astype(object).where(cases.notna(), None)
    with engines.spark_session(2, None) as spark:
        rows = spark.createDataFrame(given.to_numpy().tolist(), kinds).repartition(2)
        known = struct(*cases.columns)
        ask = mlflow.pyfunc.spark_udf(spark, uri, "string", params={"method": "suggest", "budget": 3.0})
        proba = mlflow.pyfunc.spark_udf(spark, uri, "ill double, well double")
        asked = rows.withColumn("next", ask(known)).withColumn("proba", proba(known))
        asked = asked.select("*", "proba.*").drop("proba").toPandas()

        def acquired(batches):
            model = mlflow.pyfunc.load_model(uri)
            for batch in batches:
                yield model.predict(batch, params={"method": "acquire", "budget": 3.0})

        kinds = "n_bought long, bought string, spent double, prediction string, proba_ill double, proba_well double"
        bought = rows.mapInPandas(acquired, kinds).toPandas()
    alone = asked[list(cases.columns)]
    names = np.array([*selector.features_, ""])
    assert asked["next"].tolist() == names[selector.suggest(alone, budget=3.0)].tolist()
    # Spark cuts batches of its own, and the last digit of a matrix product depends on the size of the batch.
    np.testing.assert_allclose(asked[["ill", "well"]], selector.predict_proba(alone), rtol=1e-12)
    run = selector.acquire(alone, budget=3.0)
    assert bought["spent"].tolist() == run.costs.sum(axis=1).tolist()
    np.testing.assert_allclose(bought["proba_ill"], run.proba[:, -1, 0], rtol=1e-12)
