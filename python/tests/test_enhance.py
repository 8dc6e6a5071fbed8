"""Label enhancement: the function `enhance`, and jobs that enhance their training samples."""

from __future__ import annotations

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import InputError, datasets, enhance, metrics


def _logical() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = datasets.generate(rows=80)
    L = np.zeros(data.D.shape)
    for i, degrees in enumerate(data.D):
        total = 0.0
        for c in np.argsort(-degrees, kind="stable"):
            L[i, c] = 1
            total += degrees[c]
            if total > 0.5:
                break
    return data.X, L, data.D


@pytest.mark.parametrize("method", ["lp", "km", "glle", "logical"])
@pytest.mark.parametrize("normalise", ["softmax", "sum"])
def test_distributions(method: str, normalise: str) -> None:
    X, L, D = _logical()
    P = enhance(X, L, method=method, normalise=normalise)
    assert P.shape == L.shape and P.dtype == np.float32
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-5)
    assert (P >= 0).all()
    np.testing.assert_array_equal(P, enhance(X, L.astype(bool), method=method, normalise=normalise, n_jobs=1))
    np.testing.assert_array_equal(P, enhance(X, D, method=method, normalise=normalise, binarise=0.5))


def test_trivial_lines() -> None:
    X, L, _ = _logical()
    np.testing.assert_allclose(enhance(X, L, method="logical", normalise="sum"), L / L.sum(axis=1, keepdims=True), atol=1e-6)
    soft = np.exp(L)
    np.testing.assert_allclose(enhance(X, L, method="logical"), soft / soft.sum(axis=1, keepdims=True), atol=1e-6)


def test_propagation() -> None:
    """Label propagation is the solution of its linear system."""
    X, L, _ = _logical()
    X = np.asarray(X, dtype=float)
    A = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    np.fill_diagonal(A, 0)
    root = 1 / np.sqrt(A.sum(axis=1))
    scores = np.linalg.solve(np.eye(len(X)) - 0.5 * root[:, None] * A * root, 0.5 * L)
    want = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(enhance(X, L), want, atol=1e-6)


def test_training() -> None:
    X, L, D = _logical()
    model = coppice_ldl.SABFGS(preset="paper").fit(X, enhance(X, L))
    assert metrics.kl(D, model.predict(X)) < 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "ml"}, "method='ml': want one of lp, km, glle, logical"),
        ({"normalise": "max"}, "normalise='max'"),
        ({"binarise": 1.0}, "binarise"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_wrong_options(options: dict, text: str) -> None:
    X, L, _ = _logical()
    with pytest.raises(InputError, match=text):
        enhance(X, L, **options)


def test_wrong_labels() -> None:
    X, L, D = _logical()
    with pytest.raises(InputError, match="values other than 0 and 1; with binarise=0.5"):
        enhance(X, D)
    with pytest.raises(InputError, match=r"L has the shape \(80,\), want"):
        enhance(X, L[:, 0])
    with pytest.raises(InputError, match="L has the sum 2 in row 0 .*: with binarise, L has label distributions"):
        enhance(X, 2 * D, binarise=0.5)
    gap = X.copy()
    gap[3, 0] = np.nan
    with pytest.raises(InputError, match="X has missing values .NaN."):
        enhance(gap, L)
    with pytest.raises(InputError, match="^the arrays: glle needs a matrix"):
        enhance(np.zeros((5001, 2)), np.ones((5001, 2)), method="glle")
    L[7] = 0
    with pytest.raises(InputError, match="no relevant label in row 7"):
        enhance(X, L)
    with pytest.raises(InputError, match="inconsistent numbers of samples"):
        enhance(X[:5], L)
