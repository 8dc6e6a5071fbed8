"""Targets in bounds: labels="bounded"."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from coppice_ldl import AAKNN, GLDBFGS, GLDKNN, InputError, SABFGS, StructRF, experiment, load

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 4))
Q = np.c_[5 * np.tanh(X[:, 0]), 50 + 20 * np.tanh(X[:, 1] - X[:, 2]), RNG.random(120)]


@pytest.mark.parametrize("estimator", [GLDBFGS, GLDKNN, AAKNN, StructRF])
def test_fit_predict(estimator: type, tmp_path: pathlib.Path) -> None:
    """Predictions are in the units of the targets, and within the bounds; score is R²."""
    model = estimator(labels="bounded").fit(X[:90], Q[:90])
    found = model.predict(X[90:])
    assert found.shape == (30, 3)
    low, high = Q[:90].min(axis=0), Q[:90].max(axis=0)
    assert (found >= low - 1e-5).all() and (found <= high + 1e-5).all()
    metrics = pytest.importorskip("sklearn.metrics")
    wide = found.astype(float)
    added = model.evaluate(X[90:], Q[90:])["added"]["model"]["targets"]
    assert added["mae"]["mean"] == pytest.approx(metrics.mean_absolute_error(Q[90:], wide), rel=1e-5)
    assert added["mse"]["mean"] == pytest.approx(metrics.mean_squared_error(Q[90:], wide), rel=1e-5)
    assert model.score(X[90:], Q[90:]) == pytest.approx(metrics.r2_score(Q[90:], wide), abs=1e-5)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.labels == "bounded" and (again.predict(X[90:]) == found).all()
    with pytest.raises(InputError, match="predicts targets"):
        model.predict_class(X)


def test_bounds() -> None:
    """Bounds of all labels or of each, and targets outside of them."""
    model = GLDBFGS(bounds=[(-6, 6), (0, 100), (0, 1)]).fit(X, Q)
    assert load(model.model_).bounds == [(-6.0, 6.0), (0.0, 100.0), (0.0, 1.0)]
    assert load(GLDKNN(bounds=(-10, 200)).fit(X, Q).model_).bounds == (-10.0, 200.0)
    assert GLDKNN().fit(X, Q[:, 0]).predict(X).shape == (120, 1)
    with pytest.raises(InputError, match='label 1 .* outside the bounds 0 to 60'):
        GLDKNN(bounds=[(-6, 6), (0, 60), (0, 1)]).fit(X, Q)
    for wrong, says in (
        (1, "want two numbers"),
        ((1, 2, 3), "want two numbers"),
        ((2, 1), "the lower one first"),
        ([(0, 1), (0, 1)], "bounds of 2 labels"),
    ):
        with pytest.raises(InputError, match=says):
            GLDKNN(bounds=wrong).fit(X, Q)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs labels="):
        SABFGS(bounds=(0, 1)).fit(X, Q)
    with pytest.raises(InputError, match="these algorithms predict targets: .*gld-bfgs"):
        SABFGS(labels="bounded").fit(X, Q)


def test_experiment() -> None:
    """A dataset of an experiment may have targets in bounds."""
    spec = {
        "name": "targets",
        "datasets": [{"name": "a", "X": X, "D": Q, "labels": "bounded", "bounds": [(-6, 6), (0, 100), (0, 1)], "folds": 3}],
        "methods": ["gld-bfgs", {"name": "nearest", "estimator": GLDKNN(k=5)}, "structrf"],
        "measures": ["r2_target", "mae_scaled"],
    }
    runs = experiment(spec, verbose=False).runs
    assert (runs["state"] == "done").all() and len(runs["state"]) == 9
