"""Features and labels as the arrays of a dataset."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Optional, Union

import numpy as np

from . import _arrays, _classes, _frames
from ._errors import InputError


def dataset(
    X: Any,
    D: Any,
    labels: str = "distributions",
    called: str = "coppice",
    groups: Any = None,
    values: Any = None,
    exact: bool = False,
    weights: Any = None,
) -> dict[str, np.ndarray]:
    """Return the arrays of features and labels, with the names of the columns of frames.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
    D : array-like of shape (n_samples, n_labels), or (n_samples,) for classes, ages and one target
    labels : {"distributions", "incomplete", "age", "class", "counts", "bounded"}
    called : str
        Name of the estimator, for messages.
    groups : array-like of shape (n_samples,), optional
        The group of each sample.
    values : array-like of shape (n_samples,), optional
        The exact number of each sample. Ages that are not whole numbers are their own exact numbers.
    exact : bool
        True if whole ages are exact numbers, too. A model that was trained with exact numbers is measured with them.
    weights : array-like of shape (n_samples,), optional
        The weight of each sample.

    Raises
    ------
    InputError
        If X and D do not belong together, or have no samples.
    """
    X, D = _frames.known(X), _frames.known(D)
    rows, _ = shape_of(X)
    if D is None:
        raise InputError(f"This {called} estimator requires y to be passed, but the target y is None: give the label distributions D")
    if labels == "class":
        array = _classes.names_of(D)[0]
    else:
        try:
            array = np.asarray(D.toarray()) if _arrays.is_sparse(D) else _arrays.numbers(D, "D")
        except InputError as error:
            text = _text_in(D)
            if text is None:
                raise
            advice = 'labels="class" takes the class of each sample' + (f', labels="{labels}" takes numbers' if labels in ("age", "counts", "bounded") else "")
            raise InputError(f"D has texts, such as {text!r}; {advice}") from error
    if labels in ("class", "age"):
        if array.ndim == 2 and array.shape[1] == 1:
            if labels == "class":
                _classes.warn_of_column(_caller())
            array = array.ravel()
        if array.ndim != 1:
            raise InputError(f"D has the shape {array.shape}; with labels={labels!r} it has one value for each sample: (n_samples,)")
    elif labels == "bounded" and array.ndim == 1:
        array = array.reshape(-1, 1)
    elif array.ndim > 2:
        raise InputError(f"D has the shape {array.shape}, want (n_samples, n_labels)")
    elif labels == "distributions" and array.shape in ((rows,), (rows, 1)) and (array == 1).all():
        raise InputError(
            f"D has the shape {array.shape} and every value is 1: a distribution over one label says nothing. D has a column for each "
            'label; labels="class" takes the class of each sample, and labels="age" a number'
        )
    if array.shape[:1] != (rows,):
        found = array.shape[0] if array.ndim else "no"
        raise InputError(f"Found input variables with inconsistent numbers of samples: X has {rows} samples, D has {found}")
    check_indexes(X, D)
    arrays = {**features(X), "labels": array}
    sides = arrays["features"].shape if "features" in arrays else ()
    if len(sides) == 4 and sides[3] <= 4 < sides[1]:
        text = f"X has the shape {sides}: images of {sides[1]} channels with {sides[2]} x {sides[3]} pixels; if the channels are last, give numpy.moveaxis(X, -1, 1)"
        warnings.warn(text, stacklevel=_caller())
    if groups is not None:
        arrays["groups"] = _column(X, groups, "groups", rows)
        if arrays["groups"].dtype.kind not in "biuf":
            arrays["groups"] = _classes.names_of(groups, "groups")[0]
    if values is not None:
        arrays["values"] = _arrays.numbers(_column(X, values, "values", rows), "values")
    elif labels == "age" and (exact or (np.isfinite(array) & (array != np.floor(array))).any()):
        arrays["values"] = array.astype(np.float64)
    if weights is not None:
        arrays["weights"] = _arrays.numbers(_column(X, weights, "sample_weight", rows), "sample_weight").astype(np.float64)
    names = _arrays.label_names_of(D)
    if names is not None and labels in ("distributions", "incomplete", "counts", "bounded"):
        arrays["label_names"] = np.asarray(names, dtype=str)
    return arrays


def validation(pair: Any, data: dict[str, np.ndarray], labels: str, called: str) -> Optional[dict[str, np.ndarray]]:
    """Return the arrays of validation samples, given as (X, D), with the columns of the dataset that trains; None if there are none."""
    if pair is None:
        return None
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InputError("validation: want a tuple (X, D) with the features and the labels of the validation samples")
    if "groups" in data:
        raise InputError("groups cannot be combined with validation, whose samples have no groups here; write files, and use a command of coppice with --groups and --validation")
    X, D = pair
    try:
        own = dataset(X, D, labels, called, exact="values" in data)
    except InputError as error:
        raise InputError(f"validation: {error}", error.kind, error.mistakes) from error
    if "values" not in data:
        own.pop("values", None)
    if "weights" in data:
        own["weights"] = np.ones(len(own["labels"]))
    return own


def _text_in(D: Any) -> Optional[str]:
    """Return a text of D that is no number if D has one value for each sample, and otherwise None."""
    frame = _frames.of(D)
    values = frame.objects() if frame is not None else np.asarray(D)
    if values.ndim > 2 or values.ndim == 2 and values.shape[1] != 1:
        return None
    for value in values.ravel().tolist():
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        if isinstance(text, str) and text.strip().lower() not in _classes.MISSING and _classes.number_of(text.strip()) is None:
            return text
    return None


def _caller() -> int:
    """Return the stacklevel of the first frame outside the package, for a warning of the function that calls this."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "coppice_ldl":
        level, frame = level + 1, frame.f_back
    return level


def _column(X: Any, values: Any, name: str, rows: int) -> np.ndarray:
    """Return an array with a value for each sample of X."""
    check_indexes(X, values, ("X", name))
    array = _arrays.array_of(values, name)
    if array.shape != (rows,):
        raise InputError(f"{name} has the shape {array.shape}, want a value for each of {rows} samples: ({rows},)")
    return array


def columns_of(arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Return the options that name the groups, the exact numbers and the weights of a dataset."""
    return {name: name for name in ("groups", "values", "weights") if name in arrays}


def shape_of(X: Any, images: str = "") -> tuple[int, int]:
    """Return the numbers of samples and features of X.

    Parameters
    ----------
    X : array-like or sparse matrix
    images : str
        What an X of more than two dimensions needs, for the error; "" accepts it.

    Raises
    ------
    InputError
        If X has no samples or features, or not two dimensions.
    """
    if hasattr(X, "X") and hasattr(X, "D"):
        raise InputError("X is a dataset; give its attributes X and D")
    if isinstance(X, (str, bytes)):
        raise InputError("X is a text; datasets.load reads files")
    shape = X.shape if hasattr(X, "shape") else _arrays.array_of(X, "X").shape
    if len(shape) > 2 and images:
        raise InputError(f"Found array with dim {len(shape)}, while dim <= 2 is required: {images}.")
    if len(shape) > 4:
        raise InputError(f"Found array with dim {len(shape)}, while dim <= 4 is required: (n_samples, channels, height, width).")
    if len(shape) < 2:
        raise InputError(
            f"Expected 2D array, got {'scalar' if not shape else '1D'} array instead. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    rows, columns = int(shape[0]), int(np.prod(shape[1:]))
    if rows == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={tuple(shape)}) while a minimum of 1 is required.")
    if columns == 0:
        raise InputError(f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required.")
    return rows, columns


def features(X: Any) -> dict[str, np.ndarray]:
    """Return the arrays of features, and their names if X is a frame with names."""
    X = _frames.known(X)
    if _arrays.is_sparse(X):
        return _arrays.sparse_arrays(X)
    arrays = {"features": _arrays.numbers(X, "X")}
    names = _arrays.names_of(X)
    if names is not None:
        arrays["feature_names"] = np.asarray(names, dtype=str)
    return arrays


def check_indexes(X: Any, D: Any, called: tuple[str, str] = ("X", "D")) -> None:
    """Raise an error if the indexes of two objects of pandas have the same labels in another order."""
    one: Any = getattr(X, "index", None)
    other: Any = getattr(D, "index", None)
    if not (hasattr(one, "equals") and hasattr(other, "equals")) or one.equals(other):
        return
    if len(one) == len(other) and one.is_unique and other.is_unique and len(one.difference(other)) == 0:
        raise InputError(
            f"{called[0]} and {called[1]} have the same index in another order, but samples are paired by position; "
            f"give {called[1]}.loc[{called[0]}.index]"
        )


def same_columns(D_true: Any, D_pred: Any) -> tuple[Any, Any]:
    """Return two frames with the same columns in the same order. Other objects are returned as they are."""
    true_names, pred_names = _frames.names(D_true), _frames.names(D_pred)
    if true_names is None or pred_names is None:
        return D_true, D_pred
    one, other = ([str(name).strip() for name in names] for names in (true_names, pred_names))
    plain = [str(i) for i in range(len(one))]
    if one == other or (one == plain) != (other == plain) and sorted(one) != sorted(other):  # columns without names
        return D_true, D_pred
    if sorted(one) != sorted(other):
        raise InputError(f"D_true has the columns {one[:10]}, but D_pred has {other[:10]}")
    columns = [other.index(name) for name in one]
    return D_true, D_pred.iloc[:, columns] if _frames.is_pandas(D_pred) else D_pred.pick(columns)
