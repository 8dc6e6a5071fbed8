"""Intervals: the same as of the command line, and what they cover."""

from __future__ import annotations

import csv
import subprocess
import warnings

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, GLDKNN, SABFGS, CoppiceError, InputError, Quadratic, StructRF
from conftest import make


def noisy(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.RandomState(seed)
    X = draw.normal(size=(rows, 3))
    D = np.exp(X @ np.ones((3, 3)) * [0.5, 0, -0.5] + 0.2 * draw.normal(size=(rows, 3)))
    return X, D / D.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
def test_half_width_is_an_order_statistic(coverage: float) -> None:
    """NumPy finds the same ends, and rounding excludes no calibration sample."""
    X, D = noisy(90, 1)
    model = SABFGS().fit(X[:40], D[:40])
    low, high = model.predict_interval(X, coverage, calibration=(X[40:79], D[40:79]))
    assert low.shape == high.shape == D.shape and low.dtype == np.float32
    residuals = np.sort(np.abs(D[40:79].astype(np.float32).astype(float) - model.predict(X[40:79])), axis=0)
    half = residuals[int(np.ceil(40 * coverage)) - 1]
    predicted = model.predict(X).astype(float)
    assert np.allclose(low, np.clip(predicted - half, 0, 1), atol=1e-6)
    assert np.allclose(high, np.clip(predicted + half, 0, 1), atol=1e-6)
    inside = (low[40:79] <= D[40:79].astype(np.float32)) & (D[40:79].astype(np.float32) <= high[40:79])
    assert (inside.sum(axis=0) == int(np.ceil(40 * coverage))).all()


def test_command_line_has_the_same_intervals(tmp_path) -> None:
    X, D = noisy(80, 2)
    model = AAKNN(k=5).fit(X[:40], D[:40])
    low, high = model.predict_interval(X[60:], calibration=(X[40:60], D[40:60]))
    model.save(tmp_path / "m.model")
    for name, part in (("new.npz", slice(60, 80)), ("held.npz", slice(40, 60))):
        np.savez(tmp_path / name, features=X[part], labels=D[part])
    args = ["predict", "--model", "m.model", "--data", "new.npz", "--out", "p.csv", "--interval", "0.9", "--calibrate", "held.npz"]
    subprocess.run([coppice_ldl.binary(), *args], cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    for label, name in enumerate(model.label_names_):
        column = name if name in rows[0] else f"label_{name}"
        assert np.array_equal(np.array([row[f"{column}_low"] for row in rows], dtype=np.float32), low[:, label])
        assert np.array_equal(np.array([row[f"{column}_high"] for row in rows], dtype=np.float32), high[:, label])


def test_ages_numbers_and_targets() -> None:
    X, _ = make(150, 4)
    draw = np.random.RandomState(3)
    years = np.clip(20.5 + 3 * X[:, 0] + draw.normal(size=150), 0, 40)
    ages = {"labels": "age", "sigma": 2, "range": (0, 40)}
    for train in (years, np.floor(years)):
        model = Quadratic(**ages).fit(X[:100], train[:100])
        low, high = model.predict_interval(X, calibration=(X[100:], train[100:]))
        assert low.shape == (150,) and (low >= 0).all() and (high <= 41).all()
        assert ((low <= train) & (train <= high))[100:].mean() >= 0.9
        low, high = AAKNN(**ages).fit(X[:100], train[:100]).predict_interval(X, calibration=(X[100:], train[100:]))
        assert low.shape == (150, 41) and (low <= high).all()
    targets = np.column_stack([years, -years])
    model = GLDKNN(bounds=[(0, 40), (-40, 0)]).fit(X[:100], targets[:100])
    low, high = model.predict_interval(X, calibration=(X[100:], targets[100:]))
    assert (low >= [0, -40]).all() and (high <= [40, 0]).all() and ((low <= targets) & (targets <= high))[100:].mean() >= 0.9


def test_dropped_samples_are_nan() -> None:
    X, D = noisy(60, 4)
    model = AAKNN(missing="drop").fit(X[:30], D[:30])
    new = X[50:].copy()
    new[2, 0] = np.nan
    low, high = model.predict_interval(new, calibration=(X[30:50], D[30:50]))
    assert np.isnan(low[2]).all() and np.isnan(high[2]).all() and not np.isnan(np.delete(low, 2, axis=0)).any()


def test_wrong_calibration() -> None:
    X, D = noisy(60, 5)
    model = AAKNN().fit(X[:30], D[:30])
    with pytest.raises(CoppiceError, match="trained on these samples, and none of them were held out"):
        model.predict_interval(X, calibration=(X[:30], D[:30]))
    with pytest.raises(CoppiceError, match="at least 9 calibration samples, but there are 8"):
        model.predict_interval(X, calibration=(X[30:38], D[30:38]))
    for wrong in (X, (X, D, D), None):
        with pytest.raises(InputError, match=r"calibration: want \(X, D\)"):
            model.predict_interval(X, calibration=wrong)
    for coverage in (0, 1, 90, "0.9", np.nan):
        with pytest.raises(InputError, match="coverage=.*want a number from 0.000001"):
            model.predict_interval(X, coverage, calibration=(X[30:], D[30:]))
    with pytest.raises(InputError, match="X has 2 features, but AAKNN is expecting 3"):
        model.predict_interval(X, calibration=(X[30:, :2], D[30:]))
    with pytest.raises(TypeError, match="calibration"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="not fitted"):
        AAKNN().predict_interval(X, calibration=(X, D))
    with pytest.raises(InputError, match="predicts classes"):
        StructRF(labels="class", trees=3).fit(X, np.where(X[:, 0] > 0, "a", "b")).predict_interval(X, calibration=(X, np.where(X[:, 0] > 0, "a", "b")))


def test_samples_that_training_held_out(tmp_path) -> None:
    """A model file says which samples of its data were held out for testing."""
    X, D = noisy(80, 6)
    np.savez(tmp_path / "all.npz", features=X, labels=D)
    args = ["train", "--local", "--data", "all.npz", "--algorithm", "aa-knn", "--test-fraction", "0.25", "--model-out", "m.model"]
    subprocess.run([coppice_ldl.binary(), *args], cwd=tmp_path, check=True, capture_output=True)
    model = coppice_ldl.load(tmp_path / "m.model")
    with pytest.warns(UserWarning, match="trained on this data; the 20 samples that training held out are used"):
        low, _ = model.predict_interval(X, calibration=(X, D))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_interval(X, calibration=(X[1:], D[1:]))  # other data, as far as anybody can say
    assert low.shape == D.shape
