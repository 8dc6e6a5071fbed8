"""Intervals of predictions by split conformal prediction."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import _frames, _inputs
from ._arrays import Files
from ._errors import InputError
from ._models import describe
from ._parameters import is_number, missing_flag, threads
from ._process import run


def predict_interval(estimator: Any, X: Any, coverage: float, calibration: Any) -> tuple[np.ndarray, np.ndarray]:
    """Do what `Estimator.predict_interval` says."""
    X = _frames.known(X)
    rows = estimator._check(X)
    if not is_number(coverage) or not 1e-6 <= coverage <= 1 - 1e-6:
        raise InputError(f"coverage={coverage!r}: want a number from 0.000001 to 0.999999, such as 0.9")
    if not isinstance(calibration, (tuple, list)) or len(calibration) != 2:
        raise InputError("calibration: want (X, D), samples that the model was not trained on, with their labels")
    with Files() as files:
        out = files.empty("predictions")
        args = ["predict", "-o", "json", "--format", "npz", "--out", out, f"--interval={float(coverage)!r}", *threads(estimator.n_jobs)]
        args += [*missing_flag(estimator.missing, "refuse"), "--model", files.bytes("model", estimator.model_)]
        args += ["--calibrate", files.data(_calibration(estimator, *calibration)), "--data", files.data(_inputs.features(X))]
        shown = run(args, files.descriptors).json()["intervals"]
        found = files.read_arrays(out)
    if shown["from"] == "held_out":
        text = f"the model was trained on this data; the {shown['samples']} samples that training held out are used for calibration"
        warnings.warn(text, stacklevel=3)
    ends = []
    for name in ("low", "high"):
        full = np.full((rows, *found[name].shape[1:]), np.nan, dtype=found[name].dtype)
        full[found["rows"]] = found[name]  # a sample that missing drops has NaN
        ends.append(full.reshape(-1) if estimator._predicts == "number" else full)
    return ends[0], ends[1]


def _calibration(estimator: Any, X: Any, D: Any) -> dict[str, np.ndarray]:
    """Return the arrays of calibration samples. They have exact numbers if the model was trained with exact numbers."""
    X = _frames.known(X)
    estimator._check(X)
    arrays = _inputs.dataset(X, D, estimator.labels, type(estimator).__name__, exact=True)
    if "values" in arrays:
        scale = (describe(estimator.model_).get("label_type") or {}).get("scale") or {}
        if scale.get("true") != "value":
            del arrays["values"]
    return arrays
