"""The function `coppice_ldl.enhance`."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _arrays, _frames, _inputs
from ._arrays import Files
from ._errors import InputError
from ._parameters import flags, threads
from ._process import run

_METHODS = ("lp", "km", "glle", "logical")
_NORMALISATIONS = ("softmax", "sum")


def enhance(
    X: Any, L: Any, *, method: str = "lp", normalise: str = "softmax", binarise: Optional[float] = None, n_jobs: Optional[int] = None
) -> np.ndarray:
    """Make label distributions of logical labels (label enhancement).

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
    L : array-like of shape (n_samples, n_labels)
        1 for relevant labels and 0 for others. With `binarise`, label distributions.
    method : {"lp", "km", "glle", "logical"}
        Label propagation, distances from the centres of labels in kernel space, graph Laplacian label enhancement (Xu, Liu
        and Geng 2019), or the logical labels as they are.
    normalise : {"softmax", "sum"}
        How distributions are made of scores. With "sum", negative scores become 0, then all are divided by their sum.
    binarise : float, optional
        A threshold above 0 and below 1: labels are relevant by falling probability until their sum exceeds it.
    n_jobs : int, optional
        Number of threads, which does not change the result. None and -1 use all processors.

    Returns
    -------
    ndarray of float32 of shape (n_samples, n_labels)

    Raises
    ------
    InputError
        If a sample has no relevant label, or X and L do not belong together. Also with more than 20,000 samples, or more
        than 5,000 with "glle".
    """
    for name, value, known in (("method", method, _METHODS), ("normalise", normalise, _NORMALISATIONS)):
        if value not in known:
            raise InputError(f"{name}={value!r}: want one of {', '.join(known)}")
    L = _frames.known(L)
    data = _inputs.dataset(X, L, "distributions" if binarise is not None else "counts", "enhance")
    labels = np.asarray(data["labels"])
    if labels.ndim != 2:
        raise InputError(f"L has the shape {labels.shape}, want (n_samples, n_labels)")
    if np.isnan(data.get("features", data.get("features_data"))).any():
        raise InputError("X has missing values (NaN), which have no distances; replace them first, for example with sklearn.impute.SimpleImputer")
    if binarise is None:
        if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
            raise InputError("L has values other than 0 and 1; with binarise=0.5, label distributions become logical labels")
        empty = np.flatnonzero(labels.sum(axis=1) == 0)
        if len(empty):
            raise InputError(f"L has no relevant label in row {empty[0]} (counted from 0)")
        data["labels"] = labels.astype(np.float32)
    else:
        wrong = np.flatnonzero(~(np.abs(labels.sum(axis=1) - 1) <= 1e-4))
        if len(wrong):
            raise InputError(f"L has the sum {labels[wrong[0]].sum():.6g} in row {wrong[0]} (counted from 0), want 1: with binarise, L has label distributions")
    with Files() as files:
        out = files.empty("enhanced")
        args = ["dataset", "enhance", "-o", "json", "--method", method, "--normalise", normalise, "--format", "npz", "--out", out]
        args += [*threads(n_jobs), *flags({"binarise": binarise} if binarise is not None else {}), files.data(data)]
        run(args, files.descriptors)
        found = files.read_arrays(out)
    enhanced: np.ndarray = _arrays.numbers(found["labels"], "labels").astype(np.float32)
    return enhanced
