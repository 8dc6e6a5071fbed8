"""Measures that compare predicted label distributions with true ones.

The binary computes them, so they are equal to the measures of ``coppice evaluate``, in float64. The probabilities of a
sample must sum to 1 within 0.0001; they are divided by their sum. ``normalize=True`` accepts every sum. A probability of -0.0001
or more counts as 0 if it is negative.
``clip="pyldl"`` clips probabilities at 2.2e-16 in the measures in which PyLDL does.
"""

from ._metrics import (
    all_measures,
    canberra,
    chebyshev,
    chi2,
    clark,
    cosine,
    error_probability,
    euclidean,
    fidelity,
    intersection,
    jensen_shannon,
    kendall,
    kl,
    measure_names,
    mse,
    sorensen,
    spearman,
    top_2,
    top_3,
    wave_hedges,
    zero_one,
)

__all__ = [
    "all_measures",
    "canberra",
    "chebyshev",
    "chi2",
    "clark",
    "cosine",
    "error_probability",
    "euclidean",
    "fidelity",
    "intersection",
    "jensen_shannon",
    "kendall",
    "kl",
    "measure_names",
    "mse",
    "sorensen",
    "spearman",
    "top_2",
    "top_3",
    "wave_hedges",
    "zero_one",
]


def __dir__() -> list[str]:
    return sorted(__all__)
