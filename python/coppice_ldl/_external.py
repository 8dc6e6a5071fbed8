"""Methods of an experiment that are estimators of other libraries."""

from __future__ import annotations

import copy
import csv
import os
import sys
import time
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from ._datasets import load
from ._errors import InputError, typed
from ._parameters import flags
from ._process import run
from ._progress import QUIET, Progress, write


def is_own(method: Any) -> bool:
    """Return True if a method is an estimator of another library: an object with `fit` and `predict`."""
    return not isinstance(method, (str, type, Mapping)) and callable(getattr(method, "fit", None)) and callable(getattr(method, "predict", None))


def folder_of(i: int) -> str:
    """Return the folder of the predictions of method number `i`."""
    return f"external-{i}"


def predict(spec: Mapping[str, Any], own: Mapping[int, Any], path: str, data: Optional[str], progress: Progress) -> None:
    """Fit the estimators on the training samples of each fold, and write their predictions for the test samples.

    Parameters
    ----------
    spec : dict
        The spec as the user gave it.
    own : dict of int to estimator
        The estimators by the number of the method.
    path : str
        The file of the spec. The predictions are written to its folder.
    data : str, optional
        The folder of data files.

    Raises
    ------
    InputError
        If a dataset is not on this machine, or predictions are not distributions.
    """
    folder = os.path.dirname(path)
    divisions = run(["experiment", "folds", "-o", "json", *flags({"out": os.path.join(folder, "folds"), **({"data": data} if data else {})}), "--", path]).json()
    entries = {_name(one): one for one in spec["datasets"]}
    for name, one in entries.items():
        for key in ("enhance", "mask"):
            if isinstance(one, Mapping) and one.get(key) is not None:
                raise InputError(f"the dataset {name} has the key {key}, but an estimator of another library trains on the labels as they are; leave out one of the two")
    known: dict[str, tuple[Any, np.ndarray, list[str]]] = {}
    began = shown = time.monotonic()
    for n, division in enumerate(divisions):
        name = division["dataset"]
        if name not in known:
            known[name] = _arrays(entries[name], data)
        X, D, labels = known[name]
        rows, tests = _folds(division["file"])
        kept = len(D) == len(rows)  # X of a file lacks the samples that are left out, but row numbers count them
        for i, estimator in own.items():
            out = os.path.join(folder, folder_of(i), name)
            os.makedirs(out, exist_ok=True)
            for fold, test in tests.items():
                if fold not in division.get("only", tests):
                    continue
                called = f"{type(estimator).__name__}, {name}, fold {fold}"
                train, tested = np.setdiff1d(rows, test), test
                if kept:
                    train, tested = np.searchsorted(rows, train), np.searchsorted(rows, test)
                try:
                    found = _fitted(estimator, X, D, train).predict(_rows(X, tested))
                except Exception as error:
                    raise InputError(f"{called}: {type(error).__name__}: {error}") from error
                file = f"repeat-{division['repeat']}-fold-{fold}.csv"
                _write(os.path.join(out, file), test, _checked(found, len(test), len(labels), called), labels)
                now = time.monotonic()
                if progress.shown and now - began > QUIET and now - shown > QUIET:
                    shown = now
                    write(f"experiment: {type(estimator).__name__} predicts {name}, fold {fold + 1} of {division['folds']} ({n + 1} of {len(divisions)} divisions)")


def _name(entry: Any) -> str:
    """Return the name of a dataset of a spec."""
    if isinstance(entry, Mapping) and entry.get("name"):
        return str(entry["name"])
    file = os.fspath(entry.get("file", "")) if isinstance(entry, Mapping) else os.fspath(entry)
    name = os.path.basename(file.replace("\\", "/"))
    name = name[: -len(".gz")] if name.endswith(".gz") else name
    return os.path.splitext(name)[0]


def _arrays(entry: Any, data: Optional[str]) -> tuple[Any, np.ndarray, list[str]]:
    """Return features and distributions of a dataset, and the names of its labels."""
    if isinstance(entry, Mapping) and "X" in entry:
        D = entry["D"]
        labels = entry.get("labels", "distributions")
        if labels != "distributions":
            raise InputError(f"the dataset {_name(entry)} has labels={labels!r}; an estimator of another library needs label distributions")
        from ._arrays import label_names_of

        names = label_names_of(D)
        D = np.asarray(D.toarray() if hasattr(D, "toarray") else D, dtype=float)
        if entry.get("normalize"):
            with np.errstate(invalid="ignore"):  # a sample whose labels are all 0 is refused, or left out
                D = D / D.sum(axis=1, keepdims=True)
        return entry["X"], D, names or [f"label_{c}" for c in range(D.shape[1])]
    if isinstance(entry, Mapping) and "dataset" in entry:
        raise InputError(f"the dataset {entry['dataset']} is on a cluster; an estimator of another library needs X and D, or a file")
    options = {key: value for key, value in entry.items() if key not in ("file", "name", "folds", "validation", "weighted_measures")} if isinstance(entry, Mapping) else {}
    file = os.fspath(entry["file"] if isinstance(entry, Mapping) else entry)
    found = load(os.path.join(data or "", file), **options)
    return found.X, found.D, found.label_names or [f"label_{c}" for c in range(found.D.shape[1])]


def _folds(path: str) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Return the rows of a split file in ascending order, and the rows that each fold tests. A row that the dataset lacks has empty fields."""
    rows: list[int] = []
    tests: dict[int, list[int]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        table = csv.reader(file)
        listed = next(table)[1] == "fold"
        for record in table:
            row = int(record[0])
            if record[1]:
                rows.append(row)
            for fold in [int(record[1] or -1)] if listed else [fold for fold, mark in enumerate(record[1:]) if mark == "1"]:
                if fold >= 0:
                    tests.setdefault(fold, []).append(row)
    return np.sort(np.asarray(rows, dtype=int)), {fold: np.asarray(tests[fold], dtype=int) for fold in sorted(tests)}


def _rows(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of features."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    if type(X).__module__.partition(".")[0] == "polars":
        return X[rows.tolist()]
    return np.asarray(X)[rows]


def _fitted(estimator: Any, X: Any, D: np.ndarray, train: np.ndarray) -> Any:
    """Return a copy of an estimator, fitted to some rows."""
    fresh = None
    if hasattr(estimator, "get_params") and "sklearn" in sys.modules:
        from sklearn.base import clone  # type: ignore[import-not-found, import-untyped, unused-ignore]

        fresh = clone(estimator, safe=False)
    if fresh is None:
        fresh = copy.deepcopy(estimator)
    fitted = fresh.fit(_rows(X, train), D[train])
    return fresh if fitted is None else fitted


def _checked(found: Any, rows: int, labels: int, called: str) -> np.ndarray:
    """Return predictions as an array, or raise InputError if they are not distributions."""
    try:
        P = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{called}: predict returned {typed(found)}, want an array of label distributions") from None
    if P.shape != (rows, labels):
        raise InputError(f"{called}: predict returned an array of the shape {P.shape}, want {(rows, labels)}: a label distribution for each sample")
    wrong = np.flatnonzero(~((P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) <= 1e-3)))
    if len(wrong):
        if np.isnan(P).any():
            raise InputError(f"{called}: the predictions have {int(np.isnan(P).any(axis=1).sum())} samples with NaN")
        raise InputError(
            f"{called}: the predictions for {len(wrong)} of {rows} samples are not distributions; the first has the degrees "
            f"{', '.join(f'{v:.4g}' for v in P[wrong[0], :8])}. Let predict clip them at 0 and divide them by their sum, if this is what the method says"
        )
    return P


def _write(path: str, rows: np.ndarray, P: np.ndarray, labels: Sequence[str]) -> None:
    """Write the predictions of a fold."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["row", *labels])
        table.writerows([int(row), *map(repr, map(float, p))] for row, p in zip(rows, P))
