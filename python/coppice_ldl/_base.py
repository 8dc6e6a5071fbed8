"""The base class of all estimators."""

from __future__ import annotations

import inspect
import os
import types
import uuid
import warnings
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union, overload

import numpy as np

from . import _arrays, _classes, _export, _frames, _inputs, _interval
from ._algorithms import CLASSES
from ._arrays import Files
from ._classes import is_classifier, of_classifiers
from ._errors import InputError, not_fitted, path_of
from ._models import curve_of, describe
from ._options import READING, argument_of
from ._parameters import cluster_flags, flags, is_same, missing_flag, seed_flag, threads, training_flags, value_of
from ._process import run
from ._progress import Progress

if TYPE_CHECKING:
    from typing_extensions import Self  # type checkers have it; typing has it since Python 3.11


class Estimator:
    """The base class of all estimators. It follows the conventions of scikit-learn.

    With the parameter labels "class", an estimator is a classifier: `predict` returns classes, `predict_proba` returns
    distributions, and `score` is the accuracy. Other estimators are regressors of several targets.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features. It exists if X of `fit` was a DataFrame with texts as column names.
    label_names_ : ndarray of str
        Names of the labels.
    n_labels_ : int
        Number of labels.
    classes_ : ndarray
        With the parameter labels "class": the classes as D of `fit` had them, in ascending order, as in scikit-learn. After
        `load`, the names of the classes.
    model_ : bytes
        The model file, as ``coppice train --model-out`` writes it.
    model_digest_ : str
        SHA-256 of the model.
    settings_ : dict
        The values of all hyperparameters, as the preset and the data decided.
    result_ : dict
        The output of ``coppice train -o json``.
    learning_curve_ : dict of ndarray
        The loss after each step that was recorded.
    """

    _algorithm: str = ""
    _predicts: str = "distributions"
    _weighs: bool = False  # True if fit uses the weights of samples
    _images: bool = False  # True if X may have more than two dimensions
    _forms: Mapping[str, Sequence[str]] = {}  # "bool"; and what texts may be: "int", "float", "list" or "members"

    # Declared for type checkers; `fit` sets them.
    random_state: Any
    members: Any  # of an ensemble
    labels: Any
    sigma: Any
    range: Any
    bounds: Any
    missing: Any
    normalize: Any
    n_jobs: Any
    verbose: Any
    n_features_in_: int
    feature_names_in_: np.ndarray
    label_names_: np.ndarray
    n_labels_: int
    model_: bytes
    model_digest_: str
    settings_: dict[str, Any]
    result_: dict[str, Any]
    learning_curve_: dict[str, np.ndarray]
    classes_: np.ndarray
    _class_columns: list[int]  # the label of each of classes_

    if TYPE_CHECKING:  # the generated classes have signatures of their own

        def __init__(self, **parameters: Any) -> None: ...

    def __init_subclass__(cls, **parameters: Any) -> None:
        super().__init_subclass__(**parameters)
        if "_algorithm" in cls.__dict__:
            CLASSES.setdefault(cls._algorithm, cls)
            if not cls._weighs:
                cls.fit = _without_weights(cls.fit)  # type: ignore[method-assign]

    # Parameters, as scikit-learn has them.

    @classmethod
    def _parameters(cls) -> list[str]:
        found = inspect.signature(cls.__init__).parameters.values()
        return sorted(p.name for p in found if p.name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the estimator by name.

        If `deep` is True, members of an ensemble that are estimators are included: the estimator as ``structrf``, and its
        parameters as ``structrf__trees``. The name is that of the class in lower case. Members of one class are numbered:
        ``structrf-1``, ``structrf-2``.
        """
        own = {name: getattr(self, name) for name in self._parameters()}
        if deep:
            for label, (_, member) in self._members().items():
                own[label] = member
                own.update({f"{label}__{name}": value for name, value in member.get_params().items()})
        return own

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and return the estimator.

        Raises
        ------
        ValueError
            If the estimator has no such parameter.
        """
        known = self._parameters()
        for name in known:
            if name in params:
                setattr(self, name, params.pop(name))
        for name, value in sorted(params.items(), key=lambda one: "__" in one[0]):  # first replace members, then change them
            label, _, of_member = name.partition("__")
            if label not in self._members():
                advice = " Parameters of members need members that are estimators." if of_member and "members" in known else ""
                raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {known}.{advice}")
            at, member = self._members()[label]
            if of_member:
                member.set_params(**{of_member: value})
            else:
                self.members = type(self.members)([*self.members[:at], value, *self.members[at + 1 :]])
        return self

    def _members(self) -> dict[str, tuple[int, Estimator]]:
        """Return the members that are estimators, with their places in the list, by the names that scikit-learn's make_union gives."""
        members = getattr(self, "members", None)
        found = [(i, one) for i, one in enumerate(members) if isinstance(one, Estimator)] if isinstance(members, (list, tuple)) else []
        classes = [type(one).__name__.lower() for _, one in found]
        names = [name if classes.count(name) == 1 else f"{name}-{classes[: i + 1].count(name)}" for i, name in enumerate(classes)]
        return dict(zip(names, found))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name in self._parameters()
            if getattr(self, name, None) is not defaults[name].default and repr(getattr(self, name, None)) != repr(defaults[name].default)
        ]
        text = f"{type(self).__name__}({', '.join(changed)})"
        return text if len(text) <= N_CHAR_MAX else text[: N_CHAR_MAX - 3] + "..."

    def _repr_html_(self) -> str:
        from ._display import estimator_html

        return estimator_html(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags  # type: ignore[import-not-found, import-untyped, unused-ignore]

        classes = is_classifier(self)
        return Tags(
            estimator_type=self._estimator_type,
            classifier_tags=ClassifierTags() if classes else None,
            regressor_tags=None if classes else RegressorTags(),
            target_tags=TargetTags(required=True, multi_output=not classes, single_output=classes),
            input_tags=InputTags(sparse=True, allow_nan=self.missing not in (None, "refuse")),
        )

    def _get_tags(self) -> dict[str, Any]:
        """Return the tags of scikit-learn before 1.6."""
        from sklearn.utils._tags import _DEFAULT_TAGS  # type: ignore[import-not-found, import-untyped, unused-ignore]

        several = not is_classifier(self)
        own = {"requires_y": True, "multioutput": several, "multioutput_only": several, "allow_nan": self.missing not in (None, "refuse")}
        return {**_DEFAULT_TAGS, **own, **self._more_tags()}

    def _more_tags(self) -> dict[str, Any]:
        return {}

    @property
    def _estimator_type(self) -> str:
        return "classifier" if is_classifier(self) else "regressor"

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled. It has no arrays, because a pickled array of NumPy 2 is not read by NumPy 1."""
        return {name: _packed(value) for name, value in self.__dict__.items()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore a pickled estimator. A parameter that the pickle does not have gets its default."""
        defaults = inspect.signature(type(self).__init__).parameters
        self.__dict__.update({name: defaults[name].default for name in self._parameters()})
        self.__dict__.update({name: _unpacked(value) for name, value in state.items()})

    # Training.

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        validation: Any = None,
        server: Optional[str] = None,
        context: Optional[str] = None,
        token_file: Optional[str] = None,
        ca_file: Optional[str] = None,
        tls_dir: Optional[str] = None,
        name: Optional[str] = None,
        **unsupported: Any,
    ) -> Self:
        """Train a model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. The process rounds them to float32.
        y : array-like of shape (n_samples, n_labels), or (n_samples,) with labels "class" or "age"
            Label distributions, or what the parameter `labels` says. The pages and the messages call it D, which is another
            name of this argument.
        sample_weight : array-like of shape (n_samples,), optional
            Weights: a sample of weight 2 counts as two samples in the loss. Algorithms that cannot use weights refuse them.
        validation : tuple (X, D), optional
            Validation samples of your own: their loss decides early stopping and choices, and they are never trained on. There
            is no refit. Without them, validation samples are drawn from X. With `sample_weight`, they have weight 1.
            Algorithms that do not validate refuse them.
        server : str, optional
            Addresses of coordinators, separated by commas. The model is then trained on the cluster. It is the same model,
            to the bit. The data are uploaded unless the cluster has them. An interrupt cancels the job, unless a job of this
            name existed before. So does the end of the Python process.
        context : str, optional
            Name of a context of ``coppice context``, in place of `server`.
        token_file, ca_file, tls_dir : str, optional
            Paths, as for ``coppice train``.
        name : str, optional
            Name of the job on the cluster (default: a new name).

        Returns
        -------
        self

        Raises
        ------
        InputError
            If data or a parameter is not valid. It is a ValueError.
        CoppiceError
            If the training fails.
        """
        D = unsupported.pop("D", None) if y is None else y
        if unsupported:
            raise TypeError(f"{type(self).__name__}.fit: {', '.join(sorted(unsupported))} is not supported")
        where = cluster_flags(server, context, token_file, ca_file, tls_dir)
        if name is not None and not where:
            raise InputError(f"name={name!r} is the name of a job on a cluster; give server or context, too")
        args = ["train", "--algorithm", self._algorithm, "-o", "jsonl", *training_flags(self)]
        X, D = _frames.known(X), _frames.known(D)
        data = _inputs.dataset(X, D, self.labels, type(self).__name__, weights=sample_weight)
        own = _inputs.validation(validation, data, self.labels, type(self).__name__)
        rows, columns = _inputs.shape_of(X, self._image_advice())
        args.append(seed_flag(self.random_state))
        job = name or f"{self._algorithm}-{uuid.uuid4().hex[:12]}"
        local = threads(self.n_jobs)
        if where:
            args += [*where, "--name", job, "--cancel-interrupted"]
        else:
            args += ["--local", *local]
        with Files() as files, Progress(self._algorithm, self.verbose, job if where else "") as progress:
            model, curve = files.empty("model"), files.empty("curve")
            args += ["--data", files.data(data), "--model-out", model, "--curve-out", curve, *flags(_inputs.columns_of(data))]
            if own is not None:
                args += ["--validation", files.data(own)]
            try:
                run(args, files.descriptors, progress.line, progress.note)
            except InputError as error:
                if rows > 1:
                    raise
                raise InputError(f"{error} (X has 1 sample)", error.kind, error.mistakes) from error
            result = progress.result
            blob, line = files.read(model), files.read(curve).decode()
        progress.warn()
        self.result_ = result
        self.settings_ = {argument_of(name): value_of(text) for name, text in result["settings"].items()}
        self.learning_curve_ = curve_of(line)
        for old in ("feature_names_in_", "classes_"):
            self.__dict__.pop(old, None)
        schema = result.get("schema")  # absent if the dataset of the job was deleted meanwhile
        self._adopt(blob, {"digest": result["model_digest"], **schema} if schema else describe(blob))
        self.n_features_in_ = columns
        names = [str(name).strip() for name in data.get("label_names", ())]
        if names != list(self.label_names_) and sorted(names) == sorted(self.label_names_):
            text = f"the labels are sorted as numbers: predict and label_names_ have the order {', '.join(map(str, self.label_names_[:10]))}, not the order of D"
            warnings.warn(text, stacklevel=2)
        if is_classifier(self):
            self.classes_, self._class_columns = _classes.ordered(D, self.label_names_)
            if self.n_labels_ == 1:
                warnings.warn(f"D has only the class {self.label_names_[0]!r}, so every prediction is this class", stacklevel=2)
        return self

    def _adopt(self, model: bytes, shown: Mapping[str, Any]) -> None:
        """Set the attributes that a model file decides."""
        self.model_ = model
        self._read = {name: getattr(self, name) for name in READING if name != "missing"}
        self.model_digest_ = shown["digest"]
        self.n_labels_ = shown["labels"]
        names = shown.get("label_names") or [f"label_{i}" for i in range(self.n_labels_)]
        self.label_names_ = np.asarray(names, dtype=object)
        self.n_features_in_ = shown["features"]
        if shown.get("feature_names"):
            self.feature_names_in_ = np.asarray(shown["feature_names"], dtype=object)

    def _image_advice(self) -> str:
        """Return what an X of more than two dimensions needs, or "" if the estimator takes images."""
        if not self._images:
            return f"{type(self).__name__} has features in columns; use X.reshape(len(X), -1)"
        return "" if str(getattr(self, "features", None)) == "conv" else 'set features="conv" for images, or use X.reshape(len(X), -1)'

    # Predictions.

    @overload
    def predict(self, X: Any) -> np.ndarray: ...

    @overload
    def predict(self, X: Any, *, output: Optional[str]) -> Any: ...

    def predict(self, X: Any, *, output: Optional[str] = None) -> Any:
        """Predict label distributions, classes with labels "class", or targets in their bounds with labels "bounded".

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        output : {"pandas", "polars", "pyarrow"}, optional
            The library of the result: a frame whose columns have the names of the labels, or a Series if there is one value for
            each sample. An object of pandas has the index of X if X is one, too. Of pyarrow, it is a Table or an Array.

        Returns
        -------
        ndarray of float32 of shape (n_samples, n_labels), or what `output` says
            The distributions or targets. An estimator that predicts numbers returns the shape (n_samples,).
            A sample that `missing` drops has NaN. A classifier returns what `predict_class` returns.
        """
        if is_classifier(self):
            return self.predict_class(X, output=output)
        _frames.check_output(output)
        X = _frames.known(X)
        return _frames.made(output, self._predict(X)["predictions"], self.label_names_, _frames.index_of(X), "number")

    @overload
    def predict_proba(self, X: Any) -> np.ndarray: ...

    @overload
    def predict_proba(self, X: Any, *, output: Optional[str]) -> Any: ...

    @of_classifiers
    def predict_proba(self, X: Any, *, output: Optional[str] = None) -> Any:
        """Predict the probability of each class. Only estimators with labels "class" have this method.

        Parameters
        ----------
        X, output
            As for `predict`.

        Returns
        -------
        ndarray of float32 of shape (n_samples, n_classes), or what `output` says
            The columns have the order of `classes_`. A sample that `missing` drops has NaN.
        """
        _frames.check_output(output)
        X = _frames.known(X)
        found = self._predict(X)["predictions"][:, self._class_columns]
        return _frames.made(output, found, self.classes_, _frames.index_of(X), "")

    @overload
    def predict_class(self, X: Any) -> np.ndarray: ...

    @overload
    def predict_class(self, X: Any, *, output: Optional[str]) -> Any: ...

    def predict_class(self, X: Any, *, output: Optional[str] = None) -> Any:
        """Predict the most probable label of each sample.

        Parameters
        ----------
        X, output
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_samples,), or what `output` says
            The class as D of `fit` had it, or else the name of the label. A sample that `missing` drops has None.
        """
        _frames.check_output(output)
        X = _frames.known(X)
        if self._predicts == "number":
            raise InputError(f"{type(self).__name__} predicts numbers, not classes; use predict")
        if self.labels == "bounded":
            raise InputError(f'{type(self).__name__} predicts targets with labels="bounded", not classes; use predict')
        found, classes = self._predict(X)["predictions"], self.label_names_
        if is_classifier(self):
            found, classes = found[:, self._class_columns], self.classes_
        dropped = np.isnan(found).any(axis=1)
        best: np.ndarray = classes[np.argmax(np.where(dropped[:, None], 0, found), axis=1)]
        if dropped.any():
            best = best.astype(object)
            best[dropped] = None
        return _frames.made(output, best, (), _frames.index_of(X), "class")

    @overload
    def predict_number(self, X: Any, kind: str = "expected") -> np.ndarray: ...

    @overload
    def predict_number(self, X: Any, kind: str = "expected", *, output: Optional[str]) -> Any: ...

    def predict_number(self, X: Any, kind: str = "expected", *, output: Optional[str] = None) -> Any:
        """Predict a number for each sample from ordinal labels.

        Parameters
        ----------
        X, output
            As for `predict`.
        kind : {"expected", "median", "mode"}
            Which number of the predicted distribution.

        Returns
        -------
        ndarray of shape (n_samples,), or what `output` says
        """
        _frames.check_output(output)
        X = _frames.known(X)
        if kind not in ("expected", "median", "mode"):
            raise InputError(f"kind={kind!r}: want 'expected', 'median' or 'mode'")
        found = self._predict(X)
        values = found["predictions"] if self._predicts == "number" else found.get(kind)
        if values is None:
            raise InputError(f"kind {kind!r}: the labels are not ordinal, so there is no such number; give the parameter range, or labels='age'")
        return _frames.made(output, values, (), _frames.index_of(X), "number")

    def _predict(self, X: Any) -> dict[str, np.ndarray]:
        X = _frames.known(X)
        rows = self._check(X)
        with Files() as files:
            out = files.empty("predictions")
            args = ["predict", "-o", "json", "--format", "npz", "--out", out, *threads(self.n_jobs)]
            args += missing_flag(self.missing, "refuse")
            args += ["--model", files.bytes("model", self.model_), "--data", files.data(_inputs.features(X))]
            run(args, files.descriptors)
            found = files.read_arrays(out)
        if self._predicts == "number":
            found["predictions"] = found["predictions"].reshape(-1)
        if len(found["rows"]) != rows:  # some samples were dropped
            for name in ("predictions", "expected", "median", "mode"):
                if name in found:
                    full = np.full((rows, *found[name].shape[1:]), np.nan, dtype=found[name].dtype)
                    full[found["rows"]] = found[name]
                    found[name] = full
        for name in ("expected", "median", "mode"):
            if name in found:
                found[name] = found[name].reshape(-1)
        return found

    def predict_interval(self, X: Any, coverage: float = 0.9, *, calibration: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict an interval for each label by split conformal prediction.

        If calibration samples and new samples are exchangeable, an interval contains the true degree of a new sample with at least
        the probability `coverage`: of each label by itself, on average over calibration samples and new samples. The conformity
        score is the absolute residual (Lei et al., JASA 2018). Ends are clipped to [0, 1], or to the bounds of targets or numbers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        coverage : float
            The probability, above 0 and below 1. MAPIE calls it confidence_level.
        calibration : tuple (X, D)
            Features and labels, as for `fit`, of samples that the model was not trained on. A coverage of 0.9 needs 9 samples or more.

        Returns
        -------
        low, high : ndarray of float32 of shape (n_samples, n_labels)
            The ends of the intervals. An estimator that predicts numbers returns the shape (n_samples,).
            A sample that `missing` drops has NaN.

        Raises
        ------
        InputError
            If the coverage is not possible, or the estimator predicts classes.
        CoppiceError
            If there are too few calibration samples, or the model was trained on all of them.
        """
        return _interval.predict_interval(self, X, coverage, calibration)

    def evaluate(self, X: Any, D: Any, values: Any = None) -> dict[str, Any]:
        """Compare predictions with true label distributions.

        Parameters
        ----------
        X, D
            As for `fit`.
        values : array-like of shape (n_samples,), optional
            The exact number of each sample, if the model was trained on a dataset with `values`.

        Returns
        -------
        dict
            The output of ``coppice evaluate -o json``. Its item ``measures`` has the mean and the standard deviation over samples
            of the measures of distributions. Its item ``added`` has the measures of classes, numbers and targets.
        """
        return self._evaluate(X, D, values)

    def _evaluate(self, X: Any, D: Any, values: Any, weights: Any = None) -> dict[str, Any]:
        """Evaluate for evaluate and score. The warning names the line that calls them."""
        X, D = _frames.known(X), _frames.known(D)
        self._check(X)
        data = _inputs.dataset(X, D, self.labels, type(self).__name__, values=values, exact=True, weights=weights)
        with Files() as files:
            args = ["evaluate", "-o", "json", "--model", files.bytes("model", self.model_), *threads(self.n_jobs)]
            args += missing_flag(self.missing, "refuse")
            if self._predicts != "number":
                args += ["--measures", "all"]
            args += flags({**_inputs.columns_of(data), "weighted_measures": weights is not None})
            found = dict(run([*args, "--data", files.data(data)], files.descriptors).json())
        if found.get("left_out"):
            left, all_rows = len(found["left_out"]), _inputs.shape_of(X)[0]
            if left == all_rows:
                raise InputError(f"all {left} samples have missing values, so no sample is left")
            warnings.warn(f"{left} of {all_rows} samples have missing values; they are in no measure", stacklevel=3)
        more = (found.get("added") or {}).get("model", {}).get("distribution", {})
        found["measures"] = {**found.get("measures", {}), **more}
        return found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, values: Any = None, *, D: Any = None) -> float:
        """Return the negative mean Kullback-Leibler divergence, the accuracy of classes, the negative mean absolute error of numbers, or R² of targets.

        `y` is as for `fit`, and `values` as for `evaluate`. A class that `fit` has not seen counts as an error of a classifier.
        With `sample_weight`, means are weighted.
        """
        D = D if y is None else y
        if is_classifier(self):
            return self._accuracy(X, D, sample_weight)
        found = self._evaluate(X, D, values, sample_weight)
        if self._predicts == "number":
            return -float(found["added"]["model"]["number"]["number"]["mae"]["mean"])
        if self.labels == "bounded":
            r2 = found["added"]["model"]["targets"]["r2"]["mean"]
            return float("nan" if r2 is None else r2)  # null of one sample
        return -float(found["measures"]["kl"]["mean"])

    def _accuracy(self, X: Any, D: Any, sample_weight: Any) -> float:
        X = _frames.known(X)
        rows = self._check(X)
        weights = np.ones(rows) if sample_weight is None else _arrays.numbers(sample_weight, "sample_weight")
        if weights.shape != (rows,) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise InputError(f"sample_weight: want a finite number from 0 for each of {rows} samples")
        true = _classes.positions(_inputs.dataset(X, D, "class", type(self).__name__)["labels"], self.label_names_)
        found = self._predict(X)["predictions"][:, self._class_columns]  # the first of equal probabilities, as in predict
        dropped = np.isnan(found).any(axis=1) | (true == _classes.MISSED)
        if dropped.all() or dropped.any() and self.missing != "drop":
            raise InputError(f"D: row {np.argmax(dropped)}: the class is missing" if self.missing != "drop" else f"all {len(dropped)} samples have missing values, so no sample is left")
        if dropped.any():
            warnings.warn(f"{dropped.sum()} of {len(dropped)} samples have missing values; they are in no measure", stacklevel=3)
        if not weights[~dropped].any():
            raise InputError("sample_weight: the weight of every sample is 0")
        return float(np.average(np.asarray(self._class_columns)[found[~dropped].argmax(axis=1)] == true[~dropped], weights=weights[~dropped]))

    # Explanations.

    def explain(self, X: Any) -> Any:
        """Return SHAP values: what each feature adds to the output of each sample and label.

        They are for forests (`RandomForest`, `StructRF`) and boosters (`LDLogitBoost`, `AOSOLDLogitBoost`, `LDLBoost`). For a
        forest, the output is the predicted probability. For a booster, it is the score before the softmax. The values of a
        sample and a label sum to the output less the base value. The background is the training samples, as the splits of the
        trees divided them: path-dependent TreeSHAP (Lundberg et al. 2020).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        shap.Explanation
            It has `values` of shape (n_samples, n_features, n_labels), `base_values` of shape (n_samples, n_labels), `data` of
            shape (n_samples, n_features), `feature_names` and `output_names`. ``explanation[:, :, 0]`` is about the first label,
            and the plots of shap take it. Without the package shap, the result is another object with these attributes. A
            sample that `missing` drops has NaN.

        Raises
        ------
        InputError
            If the model is neither a forest nor a booster, or X is not valid.
        """
        from ._explain import explain

        return explain(self, X)

    @property
    def feature_importances_(self) -> np.ndarray:
        """The importance of each feature of a forest or a booster, of shape (n_features,).

        It is the fraction of the gain of all splits that splits on the feature have. The gain of a split of a forest is its
        information gain, weighted by the fraction of the samples of the tree. Importances sum to 1 if the trees have splits.
        Other estimators do not have this attribute.
        """
        from ._explain import importances

        return importances(self)

    @property
    def coef_(self) -> np.ndarray:
        """The weights of a linear model, of shape (n_labels, n_features).

        A weight is the change of the score of the label if the feature grows by 1, in the unit of X, whether the training scaled
        the features or not. Most linear models predict the softmax of the scores, so only differences between labels matter.
        Other estimators do not have this attribute.
        """
        from ._explain import weights

        return weights(self, "coef_")[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The offset of the score of each label of a linear model, of shape (n_labels,). Other estimators do not have this attribute."""
        from ._explain import weights

        return weights(self, "intercept_")[1]

    def _check(self, X: Any) -> int:
        """Check X of a prediction, and return its number of samples."""
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        for name, value in getattr(self, "_read", {}).items():
            if not is_same(name, getattr(self, name), value):
                raise InputError(f"{name} was {value!r} in fit and is {getattr(self, name)!r} now; fit again")
        rows, columns = _inputs.shape_of(X, self._image_advice())
        names = _arrays.names_of(X)
        own = getattr(self, "feature_names_in_", None)
        if names is not None and own is None:
            warnings.warn(f"X has feature names, but {type(self).__name__} was fitted without feature names", stacklevel=3)
        elif names is None and own is not None:
            warnings.warn(f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names", stacklevel=3)
        elif names is not None and set(names) != set(() if own is None else own):
            raise InputError(_other_names(names, list(() if own is None else own)))
        if columns != self.n_features_in_:
            raise InputError(f"X has {columns} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input")
        return rows

    # Files.

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write the model to a file, which ``coppice predict --model`` and `load` read."""
        where = path_of("save", path, "a file")
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        with open(where, "wb") as file:
            file.write(self.model_)

    def export(self, path: Union[str, "os.PathLike[str]"], format: Optional[str] = None, *, card: Any = True, name: Optional[str] = None, license: Optional[str] = None) -> dict[str, Any]:
        """Write the model for programs without Coppice, and its card.

        Parameters
        ----------
        path : str or path
            File to write. Its end says the format if `format` is None.
        format : {"onnx", "npz", "json"}, optional
            ONNX, NumPy arrays, or JSON.
        card : bool or str
            True writes the card next to the file: with ``m.npz``, to ``m.card.md`` and ``m.card.json``. A path that ends in .md
            has another name for it. False writes no card.
        name, license : str, optional
            Name and license of the model in its card (default: the name of the file, and no license).

        Returns
        -------
        dict
            The output of ``coppice model export -o json``.

        Raises
        ------
        InputError
            If the format is unknown, or cannot have this model.
        """
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        return _export.export(self.model_, path, format, card, {"card_name": name, "license": license})

    def card(self, format: str = "md", *, name: Optional[str] = None, license: Optional[str] = None, dataset_name: Optional[str] = None) -> Any:
        """Return the model card: data, measures, hyperparameters, versions and commands.

        Parameters
        ----------
        format : {"md", "json"}
            Markdown with the front matter of Hugging Face, or a dict.
        name, license, dataset_name : str, optional
            Name and license of the model, and name of the dataset.

        Returns
        -------
        str or dict
        """
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        return _export.card_of(self.model_, format, {"card_name": name or self._algorithm, "license": license, "dataset_name": dataset_name})

    def verify(
        self,
        X: Any,
        D: Any,
        *,
        only_data: bool = False,
        values: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        validation: Any = None,
        init_from: Any = None,
        fold_seed: Optional[int] = None,
        server: Optional[str] = None,
        context: Optional[str] = None,
        token_file: Optional[str] = None,
        ca_file: Optional[str] = None,
        tls_dir: Optional[str] = None,
    ) -> dict[str, Any]:
        """Train the model again from its data, and compare the digests of data and models.

        Parameters
        ----------
        X, D
            As for `fit`.
        only_data : bool
            True compares only the digests of the data.
        values : array-like of shape (n_samples,), optional
            The exact number of each sample, if the model was trained on a dataset with `values`.
        groups : array-like of shape (n_samples,), optional
            The group of each sample, if the model was trained on a dataset with `groups`.
        sample_weight : array-like of shape (n_samples,), optional
            The weights, if the model was trained with weights.
        validation : tuple (X, D), optional
            The validation samples, if `fit` had some.
        init_from : str or path, optional
            File with the initial weights of the model, if it had some.
        fold_seed : int, optional
            Seed that drew the folds of the model, if another seed than that of the model drew them.
        server, context, token_file, ca_file, tls_dir : str, optional
            A cluster to train on, as for `fit`.

        Returns
        -------
        dict
            The output of ``coppice model verify -o json``. Its item ``verdict`` is "verified" if the training gave the same
            model, "same data" with `only_data`, or else "other data", "other model", "other measures",
            "other text" or "cannot verify".
            The item ``reason`` says why.
        """
        if not hasattr(self, "model_"):
            raise not_fitted(self)
        data = _inputs.dataset(X, D, self.labels, type(self).__name__, groups, values, weights=sample_weight)
        own = _inputs.validation(validation, data, self.labels, type(self).__name__)
        return _export.verify(self, data, own, only_data, init_from, fold_seed, (server, context, token_file, ca_file, tls_dir))


def _without_weights(method: Any) -> Any:
    """Return a copy of a method whose signature has no sample_weight: meta-estimators of scikit-learn give weights to a `fit` that has it."""
    copy: Any = types.FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__)
    copy.__kwdefaults__, copy.__doc__, copy.__qualname__, copy.__annotations__ = method.__kwdefaults__, method.__doc__, method.__qualname__, method.__annotations__
    signature = inspect.signature(method)
    copy.__signature__ = signature.replace(parameters=[one for name, one in signature.parameters.items() if name != "sample_weight"])
    return copy


class _Array:
    """An array in a pickle."""

    def __init__(self, array: np.ndarray) -> None:
        self.dtype, self.shape, self.values = array.dtype.str, array.shape, array.ravel().tolist()


def _packed(value: Any) -> Any:
    """Return a value without arrays and numbers of NumPy, as far as an estimator has them."""
    if type(value) is np.ndarray and value.dtype.kind in "biufUO":
        return _Array(value)
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    return {name: _packed(one) for name, one in value.items()} if type(value) is dict else value


def _unpacked(value: Any) -> Any:
    """Return what `_packed` was given."""
    if isinstance(value, _Array):
        array = np.empty(len(value.values), dtype=value.dtype)
        array[:] = value.values
        return array.reshape(value.shape)
    return {name: _unpacked(one) for name, one in value.items()} if type(value) is dict else value


def _other_names(found: Sequence[str], own: Sequence[str]) -> str:
    """Say which names of features differ, in scikit-learn's words."""
    lines = ["The feature names should match those that were passed during fit."]
    for title, names in (
        ("Feature names unseen at fit time:", set(found) - set(own)),
        ("Feature names seen at fit time, yet now missing:", set(own) - set(found)),
    ):
        if names:
            lines += [title, *(f"- {name}" for name in sorted(names)[:5]), *(["- ..."] if len(names) > 5 else [])]
    return "\n".join(lines) + "\n"
