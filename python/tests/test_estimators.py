"""Estimators: the same bits as the command line, all kinds of arrays and labels, and errors."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, ALGORITHMS, CoppiceError, Estimator, InputError, LDLForest, SABFGS, StructRF, load
from conftest import SMALL, make


def command(*args: str) -> str:
    """Run the binary as in a shell, without the library."""
    done = subprocess.run([coppice_ldl.binary(), *args], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def quarters(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return a dataset that has an exact value in every type: X is a multiple of 1/4, and D of 1/64."""
    X, D = make(rows)
    counts = np.floor(D * 64)
    counts[:, 0] += 64 - counts.sum(axis=1)
    return np.round(X * 4) / 4, counts / 64


# The same bits as the command line.


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_fit_and_predict_equal_the_commands(algorithm: str, tmp_path: Path) -> None:
    X, D = make(80)
    settings = SMALL.get(algorithm, {})
    estimator = ALGORITHMS[algorithm](**settings, random_state=7)
    more = []
    if estimator._predicts == "number":
        estimator.set_params(range=(0, 3))
        more = ["--range", "0:3"]
    if estimator._predicts == "targets":
        more = ["--labels", "bounded"]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "D.npy", D)
    files = json.dumps({"features": str(tmp_path / "X.npy"), "labels": str(tmp_path / "D.npy")})
    for name, value in settings.items():
        more += ["--set", f"{name}={value}"]
    path, out = str(tmp_path / "m.model"), str(tmp_path / "P.npz")
    command("train", "--local", "--algorithm", algorithm, "--seed", "7", "--data", files, "--model-out", path, *more)
    shown = json.loads(command("model", "show", path, "-o", "json"))
    estimator.fit(X, D)
    assert estimator.model_digest_ == shown["digest"]
    loaded = load(path)
    for name in ("model_digest_", "n_labels_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(estimator, name)
    assert list(loaded.label_names_) == list(estimator.label_names_)
    command("predict", "--model", path, "--data", str(tmp_path / "X.npy"), "--out", out)
    want = np.load(out)["predictions"]
    got = estimator.predict(X)
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    assert got.shape == ((80,) if estimator._predicts == "number" else D.shape)
    assert load(path).predict(X).tobytes() == want.tobytes()


def test_features_are_rounded_to_float32(data) -> None:
    X, D = data
    exact, rounded = SABFGS().fit(X, D), SABFGS().fit(X.astype(np.float32), D)
    assert not np.array_equal(X, X.astype(np.float32))
    assert exact.model_digest_ == rounded.model_digest_
    assert np.array_equal(exact.predict(X), exact.predict(X.astype(np.float32)))
    assert exact.predict(X).dtype == np.float32
    with pytest.raises(InputError, match=r"row 3, feature 2 .*1e\+39 is too large for a float32"):
        X[3, 2] = 1e39
        SABFGS().fit(X, D)


# Arrays of all kinds.


def strided(X: np.ndarray) -> np.ndarray:
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "longdouble": lambda X: X.astype(np.longdouble),
    "big-endian float64": lambda X: X.astype(">f8"),
    "big-endian float32": lambda X: X.astype(">f4"),
    "objects": lambda X: X.astype(object),
    "lists": lambda X: X.tolist(),
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_layouts(layout: str) -> None:
    X, D = quarters()
    model = SABFGS().fit(X, D)
    convert = LAYOUTS[layout]
    assert SABFGS().fit(convert(X), convert(D)).model_digest_ == model.model_digest_
    assert np.array_equal(model.predict(convert(X)), model.predict(X))


@pytest.mark.parametrize("kind", ["?", "b", "B", "h", "H", "i", "I", "q", "Q", ">i2", ">i4", ">u8"])
def test_integers(kind: str) -> None:
    X, D = quarters()
    whole = (X > 0) if kind == "?" else np.round(np.abs(X) * 4)
    model = SABFGS().fit(whole.astype(float), D)
    assert SABFGS().fit(whole.astype(kind), D).model_digest_ == model.model_digest_
    assert np.array_equal(model.predict(whole.astype(kind)), model.predict(whole.astype(float)))


def test_memory_map(tmp_path: Path) -> None:
    X, D = quarters()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert SABFGS().fit(mapped, D).model_digest_ == SABFGS().fit(X, D).model_digest_


def test_input_is_not_changed() -> None:
    X, D = quarters()
    X[3, 2] = np.nan
    keep_X, keep_D = X.copy(), D.copy()
    SABFGS(missing="mean", normalize=True).fit(X, D * 2).predict(X)
    assert np.array_equal(X, keep_X, equal_nan=True) and np.array_equal(D, keep_D)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array", "lil_matrix"])
def test_sparse(kind: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    if not hasattr(sparse, kind):
        pytest.skip(f"this SciPy has no {kind}")
    X, D = quarters()
    X[np.abs(X) < 0.7] = 0
    matrix = getattr(sparse, kind)(X)
    for estimator in (StructRF(trees=5), AAKNN(k=3), SABFGS()):
        dense = type(estimator)(**estimator.get_params()).fit(X, D)
        estimator.fit(matrix, D)
        assert estimator.model_digest_ == dense.model_digest_, type(estimator).__name__
        assert np.array_equal(estimator.predict(matrix), dense.predict(X))
    assert estimator.fit(matrix, sparse.csr_matrix(D)).model_digest_ == dense.model_digest_
    double = sparse.coo_matrix((np.array([1.0, 2.0, 4.0] * 5), (np.arange(15) // 3, np.zeros(15, int))), shape=(5, 5))
    assert np.array_equal(estimator.predict(double), dense.predict(double.toarray()))


def test_masked_array_has_missing_values() -> None:
    X, D = quarters()
    X[4, 1] = 1000
    masked = np.ma.masked_array(X, mask=X == 1000)
    with pytest.raises(InputError, match="row 4, feature 1"):
        SABFGS().fit(masked, D)
    X[4, 1] = np.nan
    assert SABFGS(missing="mean").fit(masked, D).model_digest_ == SABFGS(missing="mean").fit(X, D).model_digest_


# DataFrames.


def frames() -> tuple[Any, Any, Any]:
    pandas = pytest.importorskip("pandas")
    X, D = quarters()
    return pandas, pandas.DataFrame(X, columns=["age", "height", "size of foot", "é", "x"]), D


def test_frame() -> None:
    pandas, X, D = frames()
    model = SABFGS().fit(X, pandas.DataFrame(D, columns=["sad", "happy", "angry", "calm"]))
    assert list(model.feature_names_in_) == list(X.columns)
    assert list(model.label_names_) == ["sad", "happy", "angry", "calm"]
    assert set(model.predict_class(X)) <= set(model.label_names_)
    want = model.predict(X)
    assert np.array_equal(model.predict(X[X.columns[::-1]]), want)
    assert model.evaluate(X[X.columns[::-1]], D)["measures"] == model.evaluate(X, D)["measures"]
    assert SABFGS().fit(X.sample(frac=1, random_state=0).sort_index(), D).model_digest_ == SABFGS().fit(X, D).model_digest_
    again = load(model.model_)
    assert list(again.feature_names_in_) == list(X.columns) and list(again.label_names_) == list(model.label_names_)
    with pytest.raises(InputError, match="several columns have the name 'a'"):
        SABFGS().fit(X.set_axis(list("abcda"), axis=1), D)


def test_columns_without_names() -> None:
    pandas, X, D = frames()
    numbered = SABFGS().fit(pandas.DataFrame(X.to_numpy()), D)
    assert not hasattr(numbered, "feature_names_in_")
    assert list(numbered.label_names_) == ["label_0", "label_1", "label_2", "label_3"]
    assert numbered.model_digest_ == SABFGS().fit(X.to_numpy(), D).model_digest_


def test_types_of_columns() -> None:
    pandas, X, D = frames()
    X["x"] = np.arange(60) % 7
    X["age"] = np.arange(60) % 2
    want = SABFGS().fit(X, D).model_digest_
    mixed = X.assign(x=X["x"].astype("Int64"), age=(X["age"] == 1).astype("boolean"), height=X["height"].astype("Float32"))
    mixed["size of foot"] = X["size of foot"].astype(object)
    assert SABFGS().fit(mixed, D).model_digest_ == want
    mixed = X.assign(x=X["x"].astype("category"), age=X["age"] == 1, height=X["height"].astype("float32"))
    assert SABFGS().fit(mixed, D).model_digest_ == want
    mixed = X.assign(x=pandas.arrays.SparseArray(X["x"].to_numpy(), fill_value=0))
    assert SABFGS().fit(mixed, D).model_digest_ == want


def test_missing_values_of_pandas() -> None:
    pandas, X, D = frames()
    X.loc[5, "x"] = np.nan
    want = SABFGS(missing="mean").fit(X, D).model_digest_
    nullable = X.convert_dtypes()
    assert nullable["x"].isna().sum() == 1
    assert SABFGS(missing="mean").fit(nullable, D).model_digest_ == want
    with pytest.raises(InputError, match=r'row 5, feature 4 "x".*NaN is not a finite number'):
        SABFGS().fit(nullable, D)


def test_columns_that_are_no_numbers() -> None:
    pandas, X, D = frames()
    for values, kind, advice in (
        (["tall"] * 60, "object|str", "pandas.get_dummies"),
        (pandas.Categorical(["tall"] * 60), "category", "pandas.get_dummies"),
        (pandas.date_range("2020-01-01", periods=60), "datetime64", "make it a column of numbers, or leave it out"),
        ([{"a": 1}] * 60, "object", "pandas.get_dummies"),
    ):
        with pytest.raises(InputError, match=f"X: the column 'height' has the type ({kind}).*{advice}"):
            SABFGS().fit(X.assign(height=values), D)


# Values that are not valid.


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(value: float, data) -> None:
    X, D = data
    model = SABFGS().fit(X, D)
    X[17, 3] = value
    match = f"row 17, feature 3 .*{str(value).replace('nan', 'NaN')} is not a finite number"
    for call in (lambda: SABFGS().fit(X, D), lambda: model.predict(X), lambda: model.evaluate(X, D)):
        with pytest.raises(ValueError, match=match) as caught:
            call()
        assert isinstance(caught.value, InputError)
    X[17, 3] = 0
    D[9, 1] = value
    with pytest.raises(InputError, match="row 9, label 1 "):
        SABFGS().fit(X, D)


BAD: dict[str, tuple[Callable[[np.ndarray, np.ndarray], Any], str]] = {
    "X of one dimension": (lambda X, D: SABFGS().fit(X[0], D), "Expected 2D array, got 1D array instead"),
    "X is a number": (lambda X, D: SABFGS().fit(3.0, D), "Expected 2D array, got scalar array instead"),
    "no samples": (lambda X, D: SABFGS().fit(X[:0], D[:0]), r"0 sample\(s\)"),
    "no features": (lambda X, D: SABFGS().fit(X[:, :0], D), r"0 feature\(s\)"),
    "no labels": (lambda X, D: SABFGS().fit(X, D[:, :0]), "labels"),
    "no D": (lambda X, D: SABFGS().fit(X), "requires y to be passed"),
    "other numbers of samples": (lambda X, D: SABFGS().fit(X, D[:7]), "X has 120 samples, D has 7"),
    "D is a number": (lambda X, D: SABFGS().fit(X, 1.0), "D has no"),
    "D of three dimensions": (lambda X, D: SABFGS().fit(X, D[:, :, None]), "want .n_samples, n_labels"),
    "D of one dimension": (lambda X, D: SABFGS().fit(X, D[:, 0]), "found only one label"),
    "a negative probability": (lambda X, D: SABFGS().fit(X, D - 0.5), "row 0, label . .*is negative"),
    "a sum of 2": (lambda X, D: SABFGS().fit(X, D * 2), "row 0 .*the labels sum to 2, want 1"),
    "complex numbers": (lambda X, D: SABFGS().fit(X + 1j, D), "X: Complex data not supported"),
    "a text in an array": (lambda X, D: SABFGS().fit(X.astype(str), np.where(D > 0.9, "much", "little")), "D: .*could not convert"),
    "rows of different lengths": (lambda X, D: SABFGS().fit([[1.0, 2.0], [3.0]], D[:2]), "X: the rows have different lengths .*inhomogeneous shape"),
    "a dict": (lambda X, D: SABFGS().fit({"a": X[:, 0]}, D), r"X has the type dict; give an array, or pandas.DataFrame\(X\)"),
    "a generator": (lambda X, D: SABFGS().fit(X, (row for row in D)), r"D has the type generator; give list\(D\)"),
    "an array of arrays": (lambda X, D: SABFGS().fit(X, np.array([*D, None], object)[:-1]), r"D: the elements have the type ndarray and are no numbers; give numpy.stack\(D\)"),
    "other number of features": (lambda X, D: SABFGS().fit(X, D).predict(X[:, :3]), "X has 3 features, but SABFGS is expecting 5"),
    "prediction of no samples": (lambda X, D: SABFGS().fit(X, D).predict(X[:0]), r"0 sample\(s\)"),
    "a value out of its range": (lambda X, D: SABFGS(iterations=-3).fit(X, D), 'iterations: "-3" is not a whole number from 1'),
    "a text for a number": (lambda X, D: SABFGS(iterations="ten").fit(X, D), 'iterations: "ten" is not a whole number'),
    "an unknown word": (lambda X, D: SABFGS(scaling="standart").fit(X, D), 'scaling: "standart" is not none, standard or minmax'),
    "an unknown preset": (lambda X, D: LDLForest(preset="papr").fit(X, D), 'preset: "papr" is not auto or paper'),
    "unknown labels": (lambda X, D: SABFGS(labels="clas").fit(X, D), "labels='clas': want"),
    "unknown missing": (lambda X, D: SABFGS(missing="men").fit(X, D), 'missing="men": want "refuse", "drop", "mean", "median"'),
    "n_jobs of 0": (lambda X, D: SABFGS(n_jobs=0).fit(X, D), "n_jobs=0: want a number of threads from 1"),
    "a negative seed": (lambda X, D: SABFGS(random_state=-1).fit(X, D), "random_state=-1: want a whole number from 0"),
    "a text as seed": (lambda X, D: SABFGS(random_state="a").fit(X, D), "random_state='a': want a whole number"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input(case: str, data) -> None:
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call(*data)


def test_failed_fit_changes_nothing(data) -> None:
    X, D = data
    model = SABFGS().fit(X, D)
    before = dict(vars(model))
    with pytest.raises(InputError):
        model.fit(X, D * 2)
    assert {k: v for k, v in vars(model).items() if k != "normalize"} == {k: v for k, v in before.items() if k != "normalize"}


def test_unknown_parameter(data) -> None:
    X, D = data
    with pytest.raises(TypeError, match="unexpected keyword argument 'tree'"):
        StructRF(tree=3)
    with pytest.raises(ValueError, match=r"Invalid parameter 'tree' for estimator StructRF\(\)\. Valid parameters are: \[.*'trees'"):
        StructRF().set_params(tree=3)
    with pytest.raises(TypeError, match="StructRF.fit: groups, sample_weight is not supported"):
        StructRF().fit(X, D, sample_weight=np.ones(len(X)), groups=1)


# Kinds of labels.


def test_classes() -> None:
    X, D = make(90)
    kinds = np.array(["calm", "happy", "sad"])[np.argmax(D[:, :3], axis=1)]
    model = SABFGS(labels="class").fit(X, kinds)
    assert list(model.label_names_) == ["calm", "happy", "sad"]
    assert model.predict_proba(X).shape == (90, 3)
    assert np.mean(model.predict_class(X) == kinds) > 0.9 and np.array_equal(model.predict(X), model.predict_class(X))
    for other in (kinds.astype(object), list(kinds), kinds.reshape(-1, 1)):
        assert SABFGS(labels="class").fit(X, other).model_digest_ == model.model_digest_
    numbers = SABFGS(labels="class").fit(X, np.argmax(D[:, :3], axis=1) + 10)
    assert list(numbers.label_names_) == ["10", "11", "12"]
    assert np.allclose(numbers.predict_proba(X), model.predict_proba(X))
    with pytest.raises(InputError, match='row 1, label 0 .*missing value'):
        SABFGS(labels="class").fit(X, np.array([None if i == 1 else kinds[i] for i in range(90)], dtype=object))


def test_classes_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    X, D = make(90)
    kinds = np.array(["calm", "happy", "sad"])[np.argmax(D[:, :3], axis=1)]
    want = SABFGS(labels="class").fit(X, kinds).model_digest_
    column = pandas.Series(kinds)
    for other in (column, column.astype("category"), column.astype("string"), column.to_frame("mood")):
        assert SABFGS(labels="class").fit(X, other).model_digest_ == want
    column = column.astype("string")
    column[3] = pandas.NA
    with pytest.raises(InputError, match="row 3, label 0 .*missing value"):
        SABFGS(labels="class").fit(X, column)


def test_ages() -> None:
    X, _ = make(90)
    ages = np.clip(np.round(40 + 8 * X[:, 0] + X[:, 1]), 20, 60)
    model = StructRF(trees=20, labels="age", sigma=2, range=(15, 65)).fit(X, ages)
    assert model.n_labels_ == 51 and list(model.label_names_[:2]) == ["15", "16"]
    D = model.predict(X)
    expected = model.predict_number(X)
    assert np.allclose(expected, D @ np.arange(15, 66), atol=1e-3)
    assert np.array_equal(model.predict_number(X, "mode"), 15 + np.argmax(D, axis=1))
    assert np.array_equal(model.predict_number(X, "median"), 15 + np.argmax(np.cumsum(D, axis=1) >= 0.5, axis=1))
    assert np.mean(np.abs(expected - ages)) < 3, np.mean(np.abs(expected - ages))
    with pytest.raises(InputError, match='labels="age" needs `sigma`'):
        SABFGS(labels="age").fit(X, ages)
    with pytest.raises(InputError, match="row . .*outside the range 22 to 35"):
        SABFGS(labels="age", sigma=2, range=(22, 35)).fit(X, ages)
    with pytest.raises(InputError, match="kind='mean'"):
        model.predict_number(X, "mean")
    with pytest.raises(InputError, match="the labels are not ordinal"):
        SABFGS().fit(X, make(90)[1]).predict_number(X)


def test_counts_and_normalize() -> None:
    X, D = quarters()
    want = SABFGS().fit(X, D)
    assert SABFGS(labels="counts").fit(X, (D * 64).astype(int)).model_digest_ != ""
    assert np.allclose(SABFGS(labels="counts").fit(X, (D * 64).astype(int)).predict(X), want.predict(X), atol=1e-5)
    assert SABFGS(normalize=True).fit(X, D * 8).model_digest_ == SABFGS(normalize=True).fit(X, D).model_digest_
    with pytest.raises(InputError, match="row 0, label . .*is not a count"):
        SABFGS(labels="counts").fit(X, -D * 64)


def test_missing() -> None:
    X, D = quarters()
    X[3, 2] = X[7, 1] = np.nan
    kept = [i for i in range(60) if i not in (3, 7)]
    for how in ("mean", "median", 0, -1.5):
        filled = X.copy()
        for row, column in ((3, 2), (7, 1)):
            filled[row, column] = how if not isinstance(how, str) else getattr(np, "nan" + how)(X[:, column])
        # All samples are training samples, and the mean is rounded to float32, so predictions are nearly the same.
        model, want = AAKNN(k=3, missing=how).fit(X, D), AAKNN(k=3).fit(filled, D)
        assert np.allclose(model.predict(X), want.predict(filled), atol=1e-5), how
    with pytest.warns(UserWarning, match="2 of 60 samples have missing values and are left out"):
        dropped = SABFGS(missing="drop").fit(X, D)
    assert np.array_equal(dropped.predict(X[kept]), SABFGS().fit(X[kept], D[kept]).predict(X[kept]))
    P = dropped.predict(X)
    assert P.shape == D.shape
    assert list(np.flatnonzero(np.isnan(P).any(axis=1))) == [3, 7]
    assert np.array_equal(P[kept], dropped.predict(X[kept]))


# Threads, progress, curves and files.


def test_threads_do_not_change_the_model(data) -> None:
    X, D = data
    digests = {StructRF(trees=10, n_jobs=n).fit(X, D).model_digest_ for n in (None, 1, 2, -1, np.int64(2))}
    assert len(digests) == 1


def test_random_state(data) -> None:
    X, D = data

    def digest(state: Any) -> str:
        return StructRF(trees=3, random_state=state).fit(X, D).model_digest_

    assert digest(None) == digest(1) == digest(np.int32(1)) != digest(2)
    assert digest(np.random.RandomState(5)) == digest(np.random.RandomState(5)) != digest(np.random.RandomState(6))
    assert digest(np.random.default_rng(5)) == digest(np.random.default_rng(5))
    state = np.random.RandomState(5)
    assert digest(state) != digest(state), "a second fit draws another seed"


@pytest.mark.parametrize("bar", [True, False], ids=["tqdm", "without tqdm"])
def test_progress(bar: bool, monkeypatch, capsys) -> None:
    if bar:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
        monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(coppice_ldl._progress, "QUIET", 0.0)
    X, D = make(400, 20)
    slow = {"trees": 2, "steps": 500, "patience": 1000}
    shown = LDLForest(**slow, verbose=True).fit(X, D)
    out, err = capsys.readouterr()
    assert out == "" and "ldlf" in err and "K-L" in err and "step" in err
    assert ("%|" in err) == bar
    silent = LDLForest(**slow, verbose=False).fit(X, D)
    assert capsys.readouterr() == ("", "")
    assert LDLForest(**slow).fit(X, D).model_digest_ == shown.model_digest_ == silent.model_digest_
    assert capsys.readouterr() == ("", ""), "auto shows a bar where there is no terminal"


def test_learning_curve(data) -> None:
    X, D = data
    model = SABFGS(iterations=20).fit(X, D)
    curve = model.learning_curve_
    assert "step" in curve
    assert len({len(values) for values in curve.values()}) == 1
    steps = curve["step"]
    assert len(steps) > 3 and (np.diff(steps) > 0).all() and all(values.dtype == float for values in curve.values())


def test_result_and_score(data) -> None:
    X, D = data
    model = SABFGS().fit(X, D)
    assert model.n_labels_ == 4 and model.n_features_in_ == 5
    assert model.settings_["scaling"] == "standard" and set(model.settings_) <= set(model.get_params()) | {"lambda"}
    P = model.predict(X).astype(np.float64)
    kl = np.mean(np.sum(D * np.log(D / P), axis=1))
    assert model.score(X, D) == pytest.approx(-kl, rel=1e-4)
    assert model.evaluate(X, D)["measures"]["kl"]["mean"] == pytest.approx(kl, rel=1e-4)
    P /= P.sum(axis=1, keepdims=True)  # as the measures do
    assert coppice_ldl.metrics.kl(D, P) == pytest.approx(np.mean(np.sum(D * np.log(D / P), axis=1)), rel=1e-12)
    html = model._repr_html_()
    assert html.startswith("<code>SABFGS()</code><table>") and "samples" in html and model.model_digest_[:12] in html
    assert SABFGS(scaling="none")._repr_html_() == "<code>SABFGS(scaling=&#x27;none&#x27;)</code>"


def test_save_and_load(data, tmp_path: Path) -> None:
    X, D = data
    model = StructRF(trees=5, random_state=3).fit(X, D)
    path = tmp_path / "one.model"
    model.save(str(path))
    assert path.read_bytes() == model.model_
    for source in (path, str(path), model.model_, bytearray(model.model_), memoryview(model.model_)):
        again: Estimator = load(source)
        assert type(again) is StructRF and again.trees == 5 and again.random_state == 3
        assert again.model_digest_ == model.model_digest_ and np.array_equal(again.predict(X), model.predict(X))
    assert again.fit(X, D).model_digest_ == model.model_digest_
    out = tmp_path / "P.npz"
    np.save(tmp_path / "X.npy", X)
    command("predict", "--model", str(path), "--data", str(tmp_path / "X.npy"), "--out", str(out))
    assert np.array_equal(np.load(out)["predictions"], model.predict(X))


def test_load_what_is_no_model(data, tmp_path: Path) -> None:
    X, D = data
    model = StructRF(trees=5).fit(X, D).model_
    array = io.BytesIO()
    np.save(array, X)
    for wrong, text in (
        (b"", "does not begin with the header of a model file"),
        (array.getvalue(), "does not begin with the header of a model file"),
        (model[:-20], "truncated or damaged"),
        (model[: len(model) // 2] + bytes([model[len(model) // 2] ^ 1]) + model[len(model) // 2 + 1 :], "damaged"),
    ):
        with pytest.raises(CoppiceError, match=text):
            load(wrong)
    with pytest.raises(FileNotFoundError, match="none.model"):
        load(tmp_path / "none.model")


def test_warnings_of_the_command(data) -> None:
    X, D = data
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SABFGS().fit(X, D).predict(X)
    assert [str(one.message) for one in caught] == []
