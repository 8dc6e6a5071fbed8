"""Classes: their names in a dataset, their values, and estimators that are classifiers of scikit-learn."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
import warnings
from typing import Any, Callable, Iterable, Optional, TypeVar, Union, cast

import numpy as np

from . import _arrays, _frames
from ._errors import InputError

_Method = TypeVar("_Method", bound=Callable[..., Any])
MISSED = -2  # the position of a missing value

# Words that the process reads as a missing value.
MISSING = (
    *("", "na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "null", "none", "?", "\\n", "."),
    *("nan", "-nan", "+nan", "nan(ind)", "-nan(ind)", "nan(snan)", "-nan(snan)"),
    *("1.#qnan", "-1.#qnan", "1.#snan", "-1.#snan", "1.#ind", "-1.#ind"),
    *("#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
)


def names_of(D: Any, called: str = "D") -> tuple[np.ndarray, dict[str, Any]]:
    """Return the names of classes, and the value of each name. A missing value has the name "nan".

    Raises
    ------
    InputError
        If two values have the same name, such as 1 and "1", or are the same number, such as "1" and "1.0". Also if a class
        is a number with a fraction, as in scikit-learn.
    """
    D = _frames.known(D)
    masked = np.ma.getmaskarray(D).ravel() if isinstance(D, np.ma.MaskedArray) else None
    pandas = type(D).__module__.partition(".")[0] == "pandas"
    values = D.to_numpy(dtype=object) if pandas else D.objects() if isinstance(D, _frames.Frame) else _arrays.array_of(D, called)  # whole numbers next to NA are no floats
    if values.dtype.kind in "mM" and any(isinstance(one, int) for one in values.ravel().tolist()):  # nanoseconds
        raise InputError(f"{called}: the type {values.dtype} is not supported; give texts, such as {called}.astype(str)")
    kind = "class" if called == "D" else "group"
    names: list[str] = []
    known: dict[str, Any] = {}
    for i, value in enumerate(values.ravel().tolist()):
        value = value.item() if isinstance(value, np.generic) else value  # of an array of objects
        missing = value is None or not isinstance(value, str) and str(value) in ("<NA>", "NaT") or value != value
        if missing or (masked is not None and masked[i]):
            names.append("nan")
            continue
        if isinstance(value, bytes):
            try:
                name = value.decode()
            except UnicodeDecodeError as error:
                raise InputError(f"{called}: row {i}: {value!r} is not UTF-8; give texts") from error
        elif isinstance(value, float) and value.is_integer():
            name = str(int(value))  # as the binary writes it
        elif isinstance(value, float) and kind == "class" and values.size == len(values):
            raise InputError(f"Unknown label type: continuous. {called}: row {i}: {value!r} is no whole number; a class is a text, a whole number or a boolean")
        else:
            name = str(value).strip()
        if "\0" in name:
            raise InputError(f"{called}: row {i}: {name!r} has a NUL, which names cannot have")
        if name.lower() in MISSING:
            raise InputError(f"{name!r} means a missing value, and cannot be the name of a {kind}; rename it, or give None if the value is missing")
        first = known.setdefault(name, value)
        if first != value or isinstance(first, str) != isinstance(value, str):
            raise InputError(f"{called}: {first!r} and {value!r} have the same name, {name!r}; rename one of them")
        names.append(name)
    same: dict[Union[int, float, None], str] = {}
    numbers = {name: number_of(name) for name in known}
    if None not in numbers.values():  # the binary compares the names as numbers
        for name, number in numbers.items():
            if same.setdefault(number, name) != name:
                raise InputError(f"{called}: {same[number]!r} and {name!r} are the same number; write both in the same way, or rename one of them")
    return np.asarray(names, dtype=str).reshape(values.shape), known


def number_of(text: str) -> Union[int, float, None]:
    """Return the number that a text is, or None."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text) if text.isascii() and "_" not in text else None
    return None


def ordered(D: Any, label_names: Iterable[Any]) -> tuple[np.ndarray, list[int]]:
    """Return the classes of a model, and the position of each among the labels of the model.

    They have the order of `numpy.unique`, which scikit-learn expects. Classes that cannot be compared keep the order of the labels.
    Without D, the classes as `fit` got them, a class is the name of its label.
    """
    names = [str(name) for name in label_names]
    known = {} if D is None else names_of(D)[1]
    numbers = {number_of(name): value for name, value in known.items()}
    values = []
    for name in names:
        number = number_of(name)
        other = numbers.get(number, name) if number is not None else name  # the binary writes "+1" and "1.0" as "1"
        values.append(known.get(name, other))
    columns = list(range(len(values)))
    with contextlib.suppress(TypeError):
        columns.sort(key=values.__getitem__)
    values = [values[i] for i in columns]
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        array = np.asarray(values)
        if array.tolist() == values:  # not large whole numbers
            return array, columns
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array, columns


def positions(names: np.ndarray, label_names: Iterable[Any]) -> np.ndarray:
    """Return the position of each name among the names of labels: -1 for an unknown class, MISSED for a missing value."""
    labels = [str(name) for name in label_names]
    at = {name: i for i, name in enumerate(labels)}
    numbers = {number_of(name): i for name, i in at.items()}
    known, which = np.unique(names, return_inverse=True)
    found = []
    for name in known.tolist():
        number = number_of(name) if None not in numbers else None
        found.append(MISSED if name == "nan" else at.get(name, numbers.get(number, -1) if number is not None else -1))
    return np.asarray(found, dtype=int)[which.reshape(-1)]


def warn_of_column(level: int) -> None:
    """Warn that classes are a column, as scikit-learn does."""
    kind: type[Warning] = UserWarning
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning  # type: ignore[import-not-found, import-untyped, unused-ignore]

        kind = DataConversionWarning
    text = "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), for example using ravel()."
    warnings.warn(text, kind, stacklevel=level + 1)


class _OfClassifiers:
    """A method that an estimator has only if it is a classifier: `hasattr` is False for others."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type, unused-ignore]

    def __get__(self, estimator: Optional[Any], kind: Optional[type] = None) -> Any:
        if estimator is None:
            return self._method
        if not is_classifier(estimator):
            raise AttributeError(f"{estimator!r} has no {self._method.__name__}: predict returns what it predicts; labels=\"class\" makes a classifier")
        return types.MethodType(self._method, estimator)


def of_classifiers(method: _Method) -> _Method:
    """Return a method that only classifiers have."""
    return cast(_Method, _OfClassifiers(method))


def is_classifier(estimator: Any) -> bool:
    """Return True if an estimator is a classifier in the sense of scikit-learn: its parameter labels is "class"."""
    return bool(estimator._predicts == "distributions" and isinstance(estimator.labels, str) and estimator.labels == "class")
