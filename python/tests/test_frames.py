"""Frames of all libraries: their columns are matched by name, everywhere."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from conftest import make

from coppice_ldl import AAKNN, SABFGS, InputError, LDLForest, Ranking, datasets, metrics

FEATURES = ["width", "height", "depth", "mass", "age"]
LABELS = ["joy", "fear", "anger", "calm"]


class Stream:
    """A frame that speaks only the Arrow PyCapsule protocol."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Interchange:
    """A frame that speaks only the interchange protocol."""

    def __init__(self, table):
        self._table = table

    def __dataframe__(self, **options):
        return self._table.__dataframe__(**options)


def polars_of(frame):
    return pytest.importorskip("polars").DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def arrow_of(frame):
    return pytest.importorskip("pyarrow").table({name: frame[name].to_numpy() for name in frame.columns})


def dask_of(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)


LIBRARIES = {
    "pandas": lambda frame: frame,
    "pandas with Arrow": lambda frame: pytest.importorskip("pyarrow") and frame.astype("float64[pyarrow]"),
    "polars": polars_of,
    "polars, lazy": lambda frame: polars_of(frame).lazy(),
    "Arrow": arrow_of,
    "Arrow, batch": lambda frame: arrow_of(frame).combine_chunks().to_batches()[0],
    "PyCapsule": lambda frame: Stream(arrow_of(frame)),
    "interchange": lambda frame: Interchange(arrow_of(frame)),
    "dask": dask_of,
}


@pytest.fixture
def frames():
    X, D = make(80)
    return pd.DataFrame(X, columns=FEATURES), pd.DataFrame(D, columns=LABELS)


@pytest.mark.parametrize("library", LIBRARIES)
def test_estimators(frames, library):
    """fit, predict, score and evaluate give the same numbers for every library, with columns in any order."""
    X, D = frames
    own = LIBRARIES[library]
    want = SABFGS(iterations=5).fit(X, D)
    model = SABFGS(iterations=5).fit(own(X), own(D))
    assert model.model_digest_ == want.model_digest_
    assert list(model.feature_names_in_) == FEATURES and list(model.label_names_) == LABELS
    turned, labels = own(X[FEATURES[::-1]]), own(D[LABELS[::-1]])
    assert (model.predict(turned) == want.predict(X)).all()
    assert model.score(turned, labels) == want.score(X, D)
    assert model.evaluate(turned, labels)["measures"] == want.evaluate(X, D)["measures"]
    with pytest.raises(InputError, match="Feature names unseen at fit time"):
        model.predict(own(X.rename(columns={"age": "size"})))


@pytest.mark.parametrize("library", LIBRARIES)
def test_measures(frames, library):
    """Every measure matches columns by name, also between libraries."""
    _, D = frames
    own = LIBRARIES[library]
    P = pd.DataFrame(make(80, seed=1)[1], columns=LABELS)
    want = metrics.all_measures(D, P)
    for one, other in ((own(D), own(P[LABELS[::-1]])), (D, own(P[LABELS[::-1]])), (own(D), P[LABELS[::-1]])):
        found = metrics.all_measures(one, other)
        assert all((found[name] == want[name]).all() for name in want)
    assert metrics.kl(own(D), own(D[LABELS[::-1]])) == 0
    with pytest.raises(InputError, match="D_true has the columns"):
        metrics.kl(own(D), own(P.rename(columns={"joy": "hope"})))


@pytest.mark.parametrize("library", LIBRARIES)
def test_classes_and_missing_values(frames, library):
    """Classes in a frame, missing values, and columns without numbers."""
    own = LIBRARIES[library]
    X, _ = frames
    classes = pd.DataFrame({"kind": np.array(["a", "b"])[np.arange(80) % 2]})
    if library == "pandas with Arrow":
        own = LIBRARIES["pandas"]
    model = LDLForest(trees=1, depth=2, steps=3, validation_fraction=0, labels="class").fit(own(X), own(classes))
    assert list(model.classes_) == ["a", "b"]
    holes = X.mask(np.arange(400).reshape(80, 5) % 7 == 0)
    want = SABFGS(iterations=3, missing="mean").fit(holes, frames[1])
    assert SABFGS(iterations=3, missing="mean").fit(own(holes), own(frames[1])).model_digest_ == want.model_digest_
    with pytest.raises(InputError, match="X: the column 'kind' has the type .*encode it"):
        SABFGS().fit(own(X.assign(kind=classes["kind"])), frames[1])


def test_nulls_and_kinds():
    """Integers with nulls, decimals, booleans and a column of nulls are numbers."""
    pl = pytest.importorskip("polars")
    import decimal

    X = pl.DataFrame({"i": [1, None, 3], "d": [decimal.Decimal("1.5"), None, decimal.Decimal("2")], "b": [True, False, None], "n": [None, None, None], "u": [2**63, 1, 2]})
    from coppice_ldl import _arrays

    found = _arrays.numbers(X, "X")
    assert np.array_equal(found, [[1, 1.5, 1, np.nan, 2.0**63], [np.nan, np.nan, 0, np.nan, 1], [3, 2, np.nan, np.nan, 2]], equal_nan=True)
    with pytest.raises(InputError, match="the column 'when' has the type Date"):
        _arrays.numbers(pl.DataFrame({"when": pl.Series(["2020-01-01"]).str.to_date()}), "X")
    with pytest.raises(InputError, match="several columns have the name"):
        _arrays.names_of(pl.DataFrame({"a": [1], " a": [2]}))


def test_without_narwhals(frames, monkeypatch):
    """Without narwhals, a frame that only narwhals reads is refused with the line that installs it."""
    monkeypatch.setitem(sys.modules, "narwhals", None)
    X, D = frames
    for own in (polars_of, arrow_of):
        for call in (lambda: SABFGS().fit(own(X), D), lambda: SABFGS().fit(X, own(D)), lambda: metrics.kl(own(D), D)):
            with pytest.raises(InputError, match="pip install narwhals"):
                call()
    assert SABFGS(iterations=2).fit(X, D).score(X, D) < 0


def test_pipelines(frames):
    """The names pass through a pipeline whose transformers return frames of polars."""
    pytest.importorskip("polars")
    pytest.importorskip("sklearn", minversion="1.4")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, D = frames
    model = make_pipeline(StandardScaler().set_output(transform="polars"), SABFGS(iterations=3)).fit(X, D)
    assert list(model[-1].feature_names_in_) == FEATURES


def test_structured_arrays() -> None:
    """A structured array of NumPy is a frame: its fields are columns, which are matched by name."""
    X, D = make(40, 3, 3)
    names, labels = ["a", "b", "c"], ["x", "y", "z"]
    structured, own = (np.rec.fromarrays(values.T, names=fields) for values, fields in ((X, names), (D, labels)))
    model = AAKNN().fit(structured, own)
    assert model.feature_names_in_.tolist() == names and model.label_names_.tolist() == labels
    plain = AAKNN().fit(X, D)
    other = structured[["c", "a", "b"]]
    assert np.array_equal(model.predict(other), plain.predict(X))
    assert metrics.kl(own, own[["z", "x", "y"]]) == 0
    with pytest.raises(InputError, match="unseen at fit time:\n- d\n"):
        model.predict(np.rec.fromarrays(X.T, names=["a", "b", "d"]))
    masked = np.ma.array(np.array(structured), mask=False)
    masked["b"][3] = np.ma.masked
    with pytest.raises(InputError, match='row 3, feature 1 "b"'):
        AAKNN().fit(masked, D)
    classes = np.array([("u",), ("v",)] * 20, dtype=[("kind", "U1")])
    assert AAKNN(labels="class").fit(structured, classes).classes_.tolist() == ["u", "v"]
    wrong = (
        (np.zeros(40, [("a", float, (2,))]), "the field 'a' has the type"),
        (np.zeros((40, 2), [("a", float)]), r"the shape is \(40, 2\)"),
        (np.zeros(40, [("a", float), ("b", "U3")]), "the column 'b' has the type <U3, not numbers; encode it"),
    )
    for array, text in wrong:
        with pytest.raises(InputError, match=text):
            AAKNN().fit(array, D)


def values_of(frame):
    """Return the names and the values of a frame of any library."""
    if hasattr(frame, "iloc"):
        return [str(name) for name in frame.columns], frame.to_numpy()
    columns = [frame[name].to_numpy() for name in (frame.columns if hasattr(frame, "iter_rows") else frame.column_names)]
    return list(frame.columns if hasattr(frame, "iter_rows") else frame.column_names), np.column_stack(columns)


@pytest.mark.parametrize("output", ["pandas", "polars", "pyarrow"])
def test_predictions_are_frames(frames, output):
    """Predictions have the names of the labels, one value for each sample is a Series, and pandas keeps the index."""
    library = pytest.importorskip(output)
    X, D = frames
    X.index = D.index = [f"s{i}" for i in range(80)]
    model = SABFGS(iterations=5).fit(X, D)
    found = model.predict(X, output=output)
    assert isinstance(found, library.Table if output == "pyarrow" else library.DataFrame)
    names, values = values_of(found)
    assert names == LABELS and np.array_equal(values, model.predict(X)) and values.dtype == np.float32
    classes = np.array([3, 20, 7])[np.arange(80) % 3]
    model = AAKNN(k=3, labels="class", missing="drop").fit(X, classes)
    names, values = values_of(model.predict_proba(X, output=output))
    assert names == ["3", "7", "20"] and np.array_equal(values, model.predict_proba(X))
    numbers = Ranking(labels="age", sigma=2, range=(0, 90)).fit(X, np.arange(80))
    series = [model.predict(X, output=output), model.predict_class(X, output=output), numbers.predict(X, output=output), numbers.predict_number(X, output=output)]
    wanted = [model.predict(X), model.predict_class(X), numbers.predict(X), numbers.predict_number(X)]
    for one, want in zip(series, wanted):
        assert isinstance(one, library.Array if output == "pyarrow" else library.Series)
        assert (one.to_pylist() if output == "pyarrow" else one.to_list()) == want.tolist()
    holes = model.predict(X.mask(np.tile(np.arange(80)[:, None] == 2, 5)), output=output)
    assert (holes.to_pylist() if output == "pyarrow" else holes.to_list())[2] is None
    if output == "pandas":
        assert found.index.equals(X.index) and all(one.index.equals(X.index) for one in series)
        assert model.predict_proba(X, output=output).columns.tolist() == [3, 7, 20]
        assert model.predict(polars_of(X), output=output).index.tolist() == list(range(80))


def test_wrong_output(frames, monkeypatch):
    X, D = frames
    model = SABFGS(iterations=2).fit(X, D)
    for call in (model.predict, model.predict_class, AAKNN(labels="class").predict_proba, model.predict_number):
        with pytest.raises(InputError, match="output='numpy': want None, \"pandas\""):
            call(X, output="numpy")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match="polars is not installed; run: pip install polars"):
        model.predict(X, output="polars")

    def fail(name):
        raise ImportError(f"{name} requires NumPy 2.0 or newer")

    monkeypatch.setattr("importlib.import_module", fail)
    with pytest.raises(InputError, match="pyarrow is installed, but Python cannot import it: pyarrow requires NumPy 2.0 or newer"):
        model.predict(X, output="pyarrow")


@pytest.mark.parametrize("library", ["pandas", "polars", "Arrow"])
def test_datasets_and_frames(frames, library):
    """A dataset becomes one frame, which becomes the same dataset, in every library."""
    own, output = LIBRARIES[library], {"Arrow": "pyarrow"}.get(library, library)
    X, D = frames
    whole = pd.concat([X, D], axis=1).assign(person=np.arange(80) % 4)
    data = datasets.Dataset.from_frame(own(whole), LABELS, groups="person")
    assert data.feature_names == FEATURES and data.label_names == LABELS and data.row_names is None
    assert np.array_equal(data.X, X.to_numpy(dtype=np.float32)) and np.allclose(data.D, D) and [int(one) for one in data.groups] == whole["person"].tolist()
    data.row_names = np.array([f"s{i}" for i in range(80)])
    frame = data.to_frame(output)
    again = datasets.Dataset.from_frame(frame, LABELS, groups="group", row_names=None if output == "pandas" else "row_name")
    for name in ("X", "D", "groups", "row_names"):
        assert np.array_equal(getattr(again, name), getattr(data, name)), name
    names, values = values_of(data.label_frame(output))
    assert names == LABELS and np.array_equal(values, data.D)
    names, values = values_of(data.frame(output))
    assert names == FEATURES and np.array_equal(values, data.X)


def test_labels_of_frames(frames):
    """The options of from_frame say what the label columns contain, and errors name the column."""
    X, D = frames
    frame = X.assign(mood=np.array(["b", "a"])[np.arange(80) % 2], years=np.arange(80) / 2, id=[f"p{i}" for i in range(80)])
    read = datasets.Dataset.from_frame
    classes = read(frame, "mood", labels="class", feature_columns=FEATURES, row_names="id")
    assert classes.label_names == ["a", "b"] and classes.D[0].tolist() == [0, 1] and classes.row_names[3] == "p3"
    ages = read(frame.set_index("id"), ["years"], labels="age", sigma=2, range=(0, 40), feature_columns=FEATURES[:2])
    assert ages.D.shape == (80, 41) and np.array_equal(ages.values, frame["years"]) and ages.row_names[3] == "p3" and ages.X.shape == (80, 2)
    wrong = {
        "has no column 'mod'; did you mean 'mood'?": lambda: read(frame, "mod"),
        "the column 'id' has the type .*not numbers": lambda: read(frame, "mood", labels="class"),
        "label_columns names no column": lambda: read(frame, []),
        "feature_columns names no column": lambda: read(frame[["mood"]], "mood", labels="class"),
        "'mass' is in feature_columns and in label_columns": lambda: read(frame, ["mass", "age"], feature_columns=FEATURES),
        "is not a frame; give a DataFrame": lambda: read(X.to_numpy(), "mood"),
        "there is no option colour": lambda: read(frame, "mood", colour=1),
        "several columns have the name 'age'": lambda: datasets.Dataset(X.to_numpy(), D.to_numpy(), FEATURES, ["age", "b", "c", "d"]).to_frame(),
        "output='numpy'": lambda: classes.frame("numpy"),
    }
    for text, call in wrong.items():
        with pytest.raises(InputError, match=text):
            call()


def test_pipelines_of_frames(frames):
    """With set_output of a pipeline, names and the index reach the predictions."""
    pytest.importorskip("sklearn", minversion="1.4")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, D = frames
    X.index = D.index = [f"s{i}" for i in range(80)]
    for library in ("pandas", "polars"):
        model = make_pipeline(StandardScaler(), SABFGS(iterations=3)).set_output(transform=library).fit(X, D)
        found = model.predict(X, output=library)
        assert list(model[-1].feature_names_in_) == FEATURES and list(found.columns) == LABELS
        assert library != "pandas" or found.index.equals(X.index)
