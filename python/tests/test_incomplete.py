"""Labels in which degrees are missing: NaN in D."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import InputError, datasets, metrics

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(200, 5))
SCORES = np.exp(X @ RANDOM.normal(size=(5, 4)))
D = SCORES / SCORES.sum(axis=1, keepdims=True)
HOLES = np.where(RANDOM.random(D.shape) < 0.5, np.nan, D)


@pytest.mark.parametrize("name", ["SABFGS", "IncomLDL", "WInLDL", "LDLBoost"])
def test_incomplete_labels(name: str) -> None:
    """Half of the degrees are enough for predictions that are better than the mean."""
    model = getattr(coppice_ldl, name)(labels="incomplete").fit(X, HOLES)
    predicted = model.predict(X)
    mean = np.broadcast_to(D.mean(axis=0), D.shape)
    assert metrics.kl(D, predicted) < metrics.kl(D, mean)
    np.testing.assert_allclose(predicted.sum(axis=1), 1, atol=1e-5)


def test_complete_labels_are_the_same() -> None:
    """With nothing missing, the model is the model of complete labels."""
    one, other = coppice_ldl.SABFGS(labels="incomplete").fit(X, D), coppice_ldl.SABFGS().fit(X, D)
    assert one.result_["model_digest"] == other.result_["model_digest"]


def test_refused() -> None:
    """What cannot learn from incomplete labels says so."""
    with pytest.raises(InputError, match='labels="incomplete" keeps them'):
        coppice_ldl.SABFGS().fit(X, HOLES)
    with pytest.raises(InputError, match="sa-bfgs, incomldl, winldl and ldlboost learn from such labels"):
        coppice_ldl.AAKNN(labels="incomplete").fit(X, HOLES)
    with pytest.raises(InputError, match="sum to 1.5, want at most 1"):
        coppice_ldl.SABFGS(labels="incomplete").fit(X[:2], [[0.75, 0.75, np.nan, np.nan], [0.25, 0.25, 0.25, 0.25]])
    with pytest.raises(InputError, match='normalize=True cannot be used with labels="incomplete"'):
        coppice_ldl.SABFGS(labels="incomplete", normalize=True).fit(X, HOLES)


def test_file(tmp_path: pathlib.Path) -> None:
    """A file with empty fields is read as NaN."""
    path = tmp_path / "a.csv"
    path.write_text("x,label_a,label_b,label_c\n1,0.25,,\n2,0.25,0.25,0.5\n")
    loaded = datasets.load(path, labels="incomplete")
    np.testing.assert_array_equal(loaded.D, [[0.25, np.nan, np.nan], [0.25, 0.25, 0.5]])
