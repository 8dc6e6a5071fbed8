"""What `coppice_ldl.metrics` has."""

from __future__ import annotations

from typing import Any, Literal, Optional, Union, overload

import numpy as np

from . import _arrays, _frames, _inputs
from ._arrays import Files
from ._errors import InputError
from ._parameters import flags
from ._process import run


def all_measures(D_true: Any, D_pred: Any, *, clip: Optional[str] = None, normalize: bool = False) -> dict[str, np.ndarray]:
    """Compute all measures of each sample.

    Parameters
    ----------
    D_true, D_pred : array-like of shape (n_samples, n_labels)
        True and predicted label distributions, in this order. The columns of two frames are matched by name.
    clip : {None, "pyldl"}
    normalize : bool
        True accepts probabilities with any sum above 0, and divides them by it.

    Returns
    -------
    dict of ndarray of shape (n_samples,)
        By the name of the measure.

    Raises
    ------
    InputError
        If the shapes differ, or a value is no probability, or a sum is not 1. The text names the row and the label.
    """
    if not isinstance(normalize, (bool, np.bool_)):
        raise InputError(f"normalize={normalize!r}: want True or False")
    if clip not in (None, "none", "pyldl"):
        raise InputError(f'clip={clip!r}: want None or "pyldl"')
    D_true, D_pred = _frames.known(D_true), _frames.known(D_pred)
    _inputs.check_indexes(D_true, D_pred, ("D_true", "D_pred"))
    D_true, D_pred = _inputs.same_columns(D_true, D_pred)
    with Files() as files:
        out = files.empty("measures")
        args = ["measures", "-o", "json", "--out", out, "--clip", clip or "none"]
        args += ["--true", files.array("D_true", _matrix(D_true, "D_true"))]
        args += ["--predicted", files.array("D_pred", _matrix(D_pred, "D_pred"))]
        run(args + flags({"normalize": normalize}), files.descriptors)
        return files.read_arrays(out)


def measure_names() -> list[str]:
    """Return the names of all measures."""
    return list(all_measures([[0.5, 0.5]], [[0.5, 0.5]]))


def _matrix(D: Any, name: str) -> np.ndarray:
    array = _arrays.numbers(D.toarray() if _arrays.is_sparse(D) else D, name)
    if array.ndim == 2 and array.shape[1] == 1:
        raise InputError(f"{name} has one column, but a distribution over one label says nothing; give a column for each label")
    if array.ndim == 2 and np.isnan(array.astype(float, copy=False)).all(axis=1).any():
        raise InputError(f'{name} has samples of NaN, as predict returns them for samples that missing="drop" leaves out; compare the other samples')
    if array.ndim != 2:
        raise InputError(f"{name}: want an array of shape (n_samples, n_labels), got {array.shape}")
    if len(array) == 0:
        raise InputError(f"{name} has no samples")
    return np.ascontiguousarray(array)


class Measure:
    """A measure of label distributions.

    Calling it with ``(D_true, D_pred, *, clip=None, normalize=False, per_sample=False)`` returns the mean over samples, or with
    `per_sample` an ndarray of shape (n_samples,). `all_measures` has the other arguments.

    Attributes
    ----------
    name : str
    greater_is_better : bool
        True if a greater value is better.
    """

    def __init__(self, name: str, formula: str, greater_is_better: bool = False) -> None:
        self.name = name
        self.__name__ = name
        self.greater_is_better = greater_is_better
        self.__doc__ = f"{name}: {formula}, where d is the true and p the predicted distribution of a sample."

    @overload
    def __call__(self, D_true: Any, D_pred: Any, *, clip: Optional[str] = None, normalize: bool = False, per_sample: Literal[False] = False) -> float: ...

    @overload
    def __call__(self, D_true: Any, D_pred: Any, *, clip: Optional[str] = None, normalize: bool = False, per_sample: Literal[True]) -> np.ndarray: ...

    def __call__(
        self, D_true: Any, D_pred: Any, *, clip: Optional[str] = None, normalize: bool = False, per_sample: bool = False
    ) -> Union[float, np.ndarray]:
        values = all_measures(D_true, D_pred, clip=clip, normalize=normalize)[self.name]
        return values if per_sample else float(np.mean(values))

    def __repr__(self) -> str:
        return f"<measure {self.name}>"


kl = Measure("kl", "Σ d ln(d/p)")
euclidean = Measure("euclidean", "sqrt(Σ (d-p)²)")
sorensen = Measure("sorensen", "Σ|d-p| / Σ(d+p)")
chi2 = Measure("chi2", "Σ (d-p)²/(d+p)")
fidelity = Measure("fidelity", "Σ sqrt(d·p)", True)
intersection = Measure("intersection", "Σ min(d, p)", True)
chebyshev = Measure("chebyshev", "max|d-p|")
clark = Measure("clark", "sqrt(Σ (d-p)²/(d+p)²)")
canberra = Measure("canberra", "Σ |d-p|/(d+p)")
cosine = Measure("cosine", "Σ d·p / (sqrt(Σ d²) sqrt(Σ p²))", True)
spearman = Measure("spearman", "correlation of the ranks of d and p", True)
jensen_shannon = Measure("jensen_shannon", "(K-L(d, m) + K-L(p, m)) / 2, m = (d+p)/2")
zero_one = Measure("zero_one", "0 if d and p have their maximum at the same label, else 1")
error_probability = Measure("error_probability", "1 - d at the label with the largest p")
kendall = Measure("kendall", "(C-D) / sqrt(pairs unequal in d · pairs unequal in p), over pairs of labels: C have the same order in d and p, D the opposite", True)
wave_hedges = Measure("wave_hedges", "Σ |d-p|/max(d, p)")
mse = Measure("mse", "Σ (d-p)² / number of labels")
top_2 = Measure("top_2", "fraction of the 2 labels with the largest d that are among the 2 with the largest p", True)
top_3 = Measure("top_3", "fraction of the 3 labels with the largest d that are among the 3 with the largest p", True)
