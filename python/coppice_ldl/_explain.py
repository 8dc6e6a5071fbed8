"""Explanations of fitted estimators: SHAP values, importances of features, and weights of linear models."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from . import _frames, _inputs
from ._arrays import Files
from ._errors import InputError, not_fitted
from ._parameters import missing_flag, threads
from ._process import run

@dataclasses.dataclass
class Explanation:
    """SHAP values of samples, with the attributes of `shap.Explanation`. It is what `explain` returns without the package shap.

    Attributes
    ----------
    values : ndarray of float64 of shape (n_samples, n_features, n_labels)
        What each feature adds to the output for each label.
    base_values : ndarray of float64 of shape (n_samples, n_labels)
        The expected output, the same for all samples.
    data : ndarray of float32 of shape (n_samples, n_features)
        The features of the samples.
    feature_names, output_names : list of str
        The names of the features and of the labels.
    """

    values: np.ndarray
    base_values: np.ndarray
    data: np.ndarray
    feature_names: list[str]
    output_names: list[str]


def explain(estimator: Any, X: Any) -> Any:
    """Return the SHAP values of samples."""
    X = _frames.known(X)
    rows = estimator._check(X)
    with Files() as files:
        out = files.empty("shap")
        args = ["model", "explain", "-o", "json", "--method", "shap", "--format", "npz", "--out", out, *threads(estimator.n_jobs)]
        args += missing_flag(estimator.missing, "refuse")
        args += ["--data", files.data(_inputs.features(X)), files.bytes("model", estimator.model_)]
        try:
            run(args, files.descriptors)
        except InputError as error:
            if not _is_about_method(error):
                raise
            raise InputError(f"{type(estimator).__name__} has no SHAP values: they are for forests and boosters; permutation_importance of scikit-learn takes any estimator") from error
        found = files.read_arrays(out)
    values, data = found["values"], found["data"]
    if len(values) != rows:  # some samples were dropped
        full, features = np.full((rows, *values.shape[1:]), np.nan), np.full((rows, data.shape[1]), np.nan, dtype=data.dtype)
        full[found["rows"]], features[found["rows"]] = values, data
        values, data = full, features
    base = np.tile(found["base_values"].reshape(1, -1), (rows, 1))
    names, labels = [str(name) for name in found["feature_names"]], [str(name) for name in found["label_names"]]
    try:
        import shap  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return Explanation(values, base, data, names, labels)
    return shap.Explanation(values, base_values=base, data=data, feature_names=names, output_names=labels)


def _is_about_method(error: InputError) -> bool:
    """Return True if an error says that the method does not explain models of this algorithm."""
    return str(error).startswith("method=")


def _explained(estimator: Any, attribute: str, method: str, kinds: str) -> dict[str, Any]:
    """Return the output of ``coppice model explain`` for an attribute. An AttributeError says which estimators have it."""
    if not hasattr(estimator, "model_"):
        raise AttributeError(f"{not_fitted(estimator)}, so it has no {attribute}")
    with Files() as files:
        try:
            found = run(["model", "explain", "-o", "json", "--method", method, files.bytes("model", estimator.model_)], files.descriptors)
        except InputError as error:
            if not _is_about_method(error):
                raise
            raise AttributeError(f"{type(estimator).__name__} has no {attribute}: {kinds} have it") from error
    explained: dict[str, Any] = found.json()[method]
    return explained


def importances(estimator: Any) -> np.ndarray:
    """Return the importances of the features by gain."""
    found = _explained(estimator, "feature_importances_", "importance", "forests and boosters")
    return np.asarray([one["importance"] for one in found["features"]])


def weights(estimator: Any, attribute: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of a linear model, labels x features, and its offsets."""
    found = _explained(estimator, attribute, "weights", "linear models")
    return np.asarray([one["weights"] for one in found["features"]]).T, np.asarray(found["intercept"])
