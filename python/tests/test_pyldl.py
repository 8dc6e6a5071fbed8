"""Measures and AA-kNN agree with PyLDL, if it is installed (python/compare/requirements.txt)."""

from __future__ import annotations

import numpy as np
import pytest

import coppice_ldl
import coppice_ldl.metrics

pyldl_metrics = pytest.importorskip("pyldl.metrics", reason="PyLDL (python-ldl) is not installed")

# Names of measures in Coppice, and of the same measures in PyLDL.
MEASURES = {
    "kl": "kl_divergence",
    "euclidean": "euclidean",
    "sorensen": "sorensen",
    "chi2": "chi2",
    "fidelity": "fidelity",
    "intersection": "intersection",
    "chebyshev": "chebyshev",
    "clark": "clark",
    "canberra": "canberra",
    "cosine": "cosine",
    "spearman": "spearman",
    "jensen_shannon": "js_divergence",
    "zero_one": "zero_one_loss",
    "error_probability": "error_probability",
    "kendall": "kendall",
    "wave_hedges": "wave_hedges",
}


def distributions(kind: str, labels: int, seed: int) -> np.ndarray:
    """Return 200 distributions, which have zeros, a single label, or neither."""
    draw = np.random.default_rng(seed)
    if kind == "one-hot":
        return np.eye(labels)[draw.integers(labels, size=200)]
    D = draw.dirichlet(np.full(labels, 0.7), size=200)
    if kind == "zeros":
        D[draw.random(D.shape) < 0.4] = 0
        D[D.sum(axis=1) == 0, 0] = 1
    return D / D.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("labels", [2, 5, 68])
@pytest.mark.parametrize("predicted", ["dense", "zeros", "one-hot"])
@pytest.mark.parametrize("true", ["dense", "zeros", "one-hot"])
def test_measures(true, predicted, labels):
    D, P = distributions(true, labels, 1), distributions(predicted, labels, 2)
    found = coppice_ldl.metrics.all_measures(D, P, clip="pyldl")
    assert set(found) == {*MEASURES, "mse", "top_2", "top_3"}
    for name, other in MEASURES.items():
        want = np.asarray(getattr(pyldl_metrics, other)(D, P, reduction=None), dtype=np.float64)
        constant = np.isnan(want)  # PyLDL's correlations of equal probabilities; Coppice's are 0
        assert name in ("spearman", "kendall") or not constant.any(), name
        assert np.all(found[name][constant] == 0), name
        np.testing.assert_allclose(found[name][~constant], want[~constant], rtol=0, atol=1e-12, err_msg=name)
        if not constant.any():
            mean = getattr(coppice_ldl.metrics, name)(D, P, clip="pyldl")
            assert mean == pytest.approx(getattr(pyldl_metrics, other)(D, P), rel=0, abs=1e-12), name


def test_labels_at_the_top():
    """Without ties, top_2 and top_3 are PyLDL's match_m, and mse is the mean of squared differences."""
    D, P = distributions("dense", 7, 1), distributions("dense", 7, 2)
    for name, labels in (("top_2", 2), ("top_3", 3)):
        assert getattr(coppice_ldl.metrics, name)(D, P) == pytest.approx(pyldl_metrics.match_m(D, P, labels), rel=0, abs=1e-12)
    assert coppice_ldl.metrics.mse(D, P) == pytest.approx(np.mean((D - P) ** 2), rel=0, abs=1e-12)


def test_measures_without_clip_differ():
    """Without clip, K-L is not clipped as in PyLDL."""
    D, P = distributions("one-hot", 5, 1), distributions("one-hot", 5, 2)
    assert abs(coppice_ldl.metrics.kl(D, P) - pyldl_metrics.kl_divergence(D, P)) > 1


def test_equal_distributions():
    """All measures agree if the prediction is right, and if all probabilities are equal."""
    D = np.vstack([distributions(kind, 4, 3) for kind in ("dense", "zeros", "one-hot")])
    for P in (D, np.full_like(D, 0.25)):
        found = coppice_ldl.metrics.all_measures(D, P, clip="pyldl")
        for name, other in MEASURES.items():
            want = np.nan_to_num(np.asarray(getattr(pyldl_metrics, other)(D, P, reduction=None), dtype=np.float64))
            np.testing.assert_allclose(found[name], want, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("k", [1, 5, 12])
def test_aa_knn(k):
    """Predictions are equal up to float32, as both take the mean distribution of the k nearest samples."""
    algorithms = pytest.importorskip("pyldl.algorithms", reason="PyLDL (python-ldl) is not installed")
    pytest.importorskip("keras", reason="Keras is not installed, which PyLDL needs")
    X = np.random.default_rng(4).normal(size=(200, 6)).astype(np.float32)
    D = distributions("zeros", 5, 5)
    want = algorithms.AA_KNN(k=k).fit(X[:150], D[:150]).predict(X[150:])
    found = coppice_ldl.AAKNN(preset="paper", k=k, verbose=False).fit(X[:150], D[:150]).predict(X[150:])
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)
