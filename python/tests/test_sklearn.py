"""The conventions of scikit-learn: all checks of check_estimator for all algorithms, and scikit-learn's tools."""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import subprocess
import sys
import textwrap
import unittest
import warnings
from typing import Any, Callable

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

import sklearn.utils.estimator_checks as estimator_checks
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import column_or_1d
from sklearn.utils.validation import has_fit_parameter

import coppice_ldl
from coppice_ldl import AAKNN, ALGORITHMS, SABFGS, InputError, RandomForest, StructRF
from conftest import SMALL, make

VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
LABELS = 5

# The checks of scikit-learn 1.2 and of the newest version. A skipped check fails, unless SKIPPED has its reason.
CHECKS: dict[tuple[int, int], str] = {
    (1, 2): """
        check_complex_data
        check_dict_unchanged
        check_dont_overwrite_parameters
        check_dtype_object
        check_estimator_get_tags_default_keys
        check_estimator_sparse_data
        check_estimators_dtypes
        check_estimators_empty_data_messages
        check_estimators_fit_returns_self
        check_estimators_fit_returns_self(readonly_memmap=True)
        check_estimators_nan_inf
        check_estimators_overwrite_params
        check_estimators_partial_fit_n_features
        check_estimators_pickle
        check_estimators_unfitted
        check_fit1d
        check_fit2d_1feature
        check_fit2d_1sample
        check_fit2d_predict1d
        check_fit_check_is_fitted
        check_fit_idempotent
        check_fit_score_takes_y
        check_get_params_invariance
        check_methods_sample_order_invariance
        check_methods_subset_invariance
        check_n_features_in
        check_no_attributes_set_in_init
        check_non_transformer_estimators_n_iter
        check_parameters_default_constructible
        check_pipeline_consistency
        check_regressor_data_not_an_array
        check_regressors_int
        check_regressors_no_decision_function
        check_regressors_train
        check_regressors_train(readonly_memmap=True)
        check_regressors_train(readonly_memmap=True, X_dtype=float32)
        check_requires_y_none
        check_set_params
        check_supervised_y_2d
        check_supervised_y_no_nan
    """,
    (1, 9): """
        check_array_api_input(array_namespace=numpy, expect_only_array_outputs=False)
        check_complex_data
        check_dict_unchanged
        check_do_not_raise_errors_in_init_or_set_params
        check_dont_overwrite_parameters
        check_dtype_object
        check_estimator_cloneable
        check_estimator_repr
        check_estimator_sparse_array
        check_estimator_sparse_matrix
        check_estimator_sparse_tag
        check_estimator_tags_renamed
        check_estimators_dtypes
        check_estimators_empty_data_messages
        check_estimators_fit_returns_self
        check_estimators_nan_inf
        check_estimators_overwrite_params
        check_estimators_partial_fit_n_features
        check_estimators_pickle
        check_estimators_pickle(readonly_memmap=True)
        check_estimators_unfitted
        check_f_contiguous_array_estimator
        check_fit1d
        check_fit2d_1feature
        check_fit2d_1sample
        check_fit2d_predict1d
        check_fit_check_is_fitted
        check_fit_idempotent
        check_fit_score_takes_y
        check_get_params_invariance
        check_methods_sample_order_invariance
        check_methods_subset_invariance
        check_mixin_order
        check_n_features_in
        check_n_features_in_after_fitting
        check_no_attributes_set_in_init
        check_non_transformer_estimators_n_iter
        check_parameters_default_constructible
        check_pipeline_consistency
        check_positive_only_tag_during_fit
        check_readonly_memmap_input
        check_regressor_data_not_an_array
        check_regressors_int
        check_regressors_no_decision_function
        check_regressors_train
        check_regressors_train(readonly_memmap=True)
        check_regressors_train(readonly_memmap=True, X_dtype=float32)
        check_requires_y_none
        check_set_params
        check_supervised_y_2d
        check_supervised_y_no_nan
        check_valid_tag_types
    """,
}
SKIPPED = {
    "check_array_api_input(array_namespace=numpy, expect_only_array_outputs=False)": "test_array_api runs it: "
    "SciPy reads the variable SCIPY_ARRAY_API at its import",
}


class Numbers:
    """An adapter of an estimator to the targets of scikit-learn's checks, which are numbers and classes."""

    def _grid(self) -> np.ndarray:
        return np.linspace(self.low_, self.high_, LABELS)  # type: ignore[attr-defined]

    def fit(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit distributions with a peak at y."""
        if y is None:
            return super().fit(X, None, **options)  # type: ignore[misc]
        values = column_or_1d(y, warn=True).astype(float).reshape(-1, 1)
        self.low_, self.high_ = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
        width = (self.high_ - self.low_) / LABELS or 1.0
        D = np.exp(-((values - self._grid()) ** 2) / (2 * width**2))
        return super().fit(X, D / D.sum(axis=1, keepdims=True), **options)  # type: ignore[misc]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the expected number."""
        predicted = super().predict(X)  # type: ignore[misc]
        if self._predicts == "number":  # type: ignore[attr-defined]
            return np.interp(predicted, np.arange(LABELS), self._grid())
        return predicted @ self._grid()

    def score(self, X: Any, y: Any) -> float:
        return -float(np.mean((self.predict(X) - np.asarray(y)) ** 2))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.single_output, tags.target_tags.multi_output = True, False
        tags.regressor_tags.poor_score = True  # five labels, and few steps of training
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {"multioutput": False, "multioutput_only": False, "poor_score": True}


def adapt(algorithm: str) -> type:
    """Return the class of an algorithm with the adapter, as a class of this module, which pickle finds."""
    base = ALGORITHMS[algorithm]
    adapted = type("Numbers" + base.__name__, (Numbers, base), {"__module__": __name__, "__init__": base.__init__})
    globals()[adapted.__name__] = adapted
    return adapted


ADAPTED = {algorithm: adapt(algorithm) for algorithm in ALGORITHMS}


def estimator_of(algorithm: str) -> Any:
    made = ADAPTED[algorithm](**SMALL.get(algorithm, {}))
    if made._predicts == "targets":  # one of them is constant in some checks
        return made.set_params(bounds=(0, 1))
    return made.set_params(range=(0, LABELS - 1)) if made._predicts == "number" else made


def check_name(check: Any) -> str:
    """Return the name of a check with its arguments."""
    more: dict[str, Any] = {}
    while isinstance(check, functools.partial):
        more, check = {**check.keywords, **more}, check.func
    more.pop("name", None)
    return check.__name__ + (f"({', '.join(f'{k}={v}' for k, v in more.items())})" if more else "")


@functools.lru_cache(None)
def checks_of(algorithm: str) -> dict[str, Callable[[], None]]:
    """Return the checks that check_estimator runs, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(estimator_checks, "estimator_checks_generator"):
            found = list(estimator_checks.estimator_checks_generator(estimator_of(algorithm)))
        else:
            found = list(estimator_checks.check_estimator(estimator_of(algorithm), generate_only=True))
    return {check_name(check): functools.partial(check, made) for made, check in found}


def run_check(check: Callable[[], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check()


NAMES = sorted(CHECKS[VERSION].split("\n")) if VERSION in CHECKS else sorted(checks_of("sa-bfgs"))
NAMES = [name.strip() for name in NAMES if name.strip()]


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_checks_are_listed(algorithm: str) -> None:
    if VERSION not in CHECKS:
        pytest.skip(f"the checks of scikit-learn {sklearn.__version__} are not listed; all are run")
    assert sorted(checks_of(algorithm)) == sorted(NAMES)
    assert set(SKIPPED) <= {name for text in CHECKS.values() for name in (line.strip() for line in text.split("\n"))}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_check_estimator(algorithm: str, name: str) -> None:
    try:
        run_check(checks_of(algorithm)[name])
    except unittest.SkipTest as reason:
        assert name in SKIPPED, f"scikit-learn skips {name}: {reason}"
    else:
        assert name not in SKIPPED or os.environ.get("SCIPY_ARRAY_API") == "1", f"{name} is run: delete it from SKIPPED"


@pytest.mark.skipif(VERSION < (1, 9), reason="scikit-learn 1.9 or newer has the check")
def test_array_api() -> None:
    code = """
        import pytest
        raise SystemExit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "check_array_api_input and (structrf or quadratic)", "test_sklearn.py"]))
    """
    child = inner(code, SCIPY_ARRAY_API="1")
    assert child.returncode == 0, child.stdout + child.stderr
    assert "2 passed" in child.stdout, child.stdout


def inner(code: str, *args: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run code in another interpreter."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=os.path.dirname(__file__),
        env={**os.environ, **environment},
    )


# Checks that check_estimator leaves out.


@pytest.mark.parametrize("algorithm", ["sa-bfgs", "structrf", "quadratic"])
def test_more_checks(algorithm: str) -> None:
    """check_estimator of scikit-learn before 1.6 does not run this check."""
    made = estimator_of(algorithm)
    run_check(functools.partial(estimator_checks.check_n_features_in_after_fitting, type(made).__name__, made))


def test_columns_are_matched_by_name() -> None:
    """scikit-learn's check wants an error about columns in another order. Here they are matched by name."""
    pandas = pytest.importorskip("pandas")
    made = estimator_of("sa-bfgs")
    with pytest.raises(AssertionError, match="Feature names must be in the same order|[Dd]id not raise"):
        run_check(functools.partial(estimator_checks.check_dataframe_column_names_consistency, type(made).__name__, made))
    draw = np.random.RandomState(0)
    X = pandas.DataFrame(draw.normal(size=(40, 3)), columns=["a", "b", "c"])
    made.fit(X, draw.normal(size=40))
    assert list(made.feature_names_in_) == ["a", "b", "c"]
    assert made.feature_names_in_.dtype == object
    want = made.predict(X)
    assert np.array_equal(made.predict(X[["c", "a", "b"]]), want)
    with pytest.raises(ValueError, match="The feature names should match(.|\n)*unseen at fit time:\n- d\n(.|\n)*now missing:\n- c"):
        made.predict(X.rename(columns={"c": "d"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but NumbersSABFGS was fitted with feature names"):
        assert np.array_equal(made.predict(X.to_numpy()), want)
    made.fit(X.to_numpy(), draw.normal(size=40))
    assert not hasattr(made, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but NumbersSABFGS was fitted without feature names"):
        made.predict(X)


# The tools of scikit-learn.


def kl_of(model: Any, X: Any, D: Any) -> float:
    P = np.clip(np.asarray(model.predict(X), dtype=np.float64), 1e-12, None)
    return float(np.mean(np.sum(D * np.log(D / P), axis=1)))


def test_clone_and_params(data) -> None:
    X, D = data
    model = StructRF(trees=7, random_state=4).fit(X, D)
    copy = clone(model)
    assert copy is not model and not hasattr(copy, "model_")
    assert copy.get_params() == model.get_params()
    assert copy.fit(X, D).model_digest_ == model.model_digest_
    assert repr(copy.set_params(trees=9)) == "StructRF(random_state=4, trees=9)"
    assert copy.fit(X, D).settings_["trees"] == 9
    with pytest.raises(ValueError, match="Invalid parameter 'tree' for estimator StructRF"):
        copy.set_params(tree=3)


def test_grid_search(data) -> None:
    X, D = data
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(AAKNN(), {"k": [1, 5, 60]}, cv=folds).fit(X, D)
    want = []
    for k in (1, 5, 60):
        scores = []
        for train, test in folds.split(X):
            scores.append(-kl_of(AAKNN(k=k).fit(X[train], D[train]), X[test], D[test]))
        want.append(np.mean(scores))
    assert np.allclose(search.cv_results_["mean_test_score"], want, rtol=1e-5)
    assert search.best_params_ == {"k": (1, 5, 60)[int(np.argmax(want))]}
    assert search.best_estimator_.settings_["k"] == search.best_params_["k"]
    assert np.array_equal(search.predict(X), AAKNN(**search.best_params_).fit(X, D).predict(X))


def test_cross_validation(data) -> None:
    X, D = data
    scores = cross_val_score(SABFGS(), X, D, cv=KFold(4))
    assert scores.shape == (4,) and (scores < 0).all() and (scores > -0.5).all()
    predicted = cross_val_predict(SABFGS(), X, D, cv=KFold(4))
    assert predicted.shape == D.shape
    test = np.arange(30)
    assert np.array_equal(predicted[test], SABFGS().fit(X[30:], D[30:]).predict(X[:30]))


def test_inspection(data) -> None:
    """Partial dependence and importance by permutation take an estimator, because it is a regressor of several targets."""
    X, D = data
    model = SABFGS().fit(X, D)
    found = partial_dependence(model, X, [1], method="brute", grid_resolution=3)
    (values,) = found["grid_values" if "grid_values" in found else "values"]
    for i, value in enumerate(values):
        moved = X.copy()
        moved[:, 1] = value
        assert np.allclose(found["average"][:, i], model.predict(moved).mean(axis=0), atol=1e-6)
    assert permutation_importance(model, X, D, n_repeats=2, random_state=0).importances.shape == (X.shape[1], 2)


def test_pipeline(data) -> None:
    X, D = data
    X = X * [1, 10, 100, 1000, 1e4] + 5
    pipe = make_pipeline(StandardScaler(), AAKNN(k=5)).fit(X, D)
    scaled = StandardScaler().fit_transform(X)
    assert np.array_equal(pipe.predict(X), AAKNN(k=5).fit(scaled, D).predict(scaled))
    assert pipe.score(X, D) == AAKNN(k=5).fit(scaled, D).score(scaled, D)
    search = GridSearchCV(pipe, {"aaknn__k": [1, 5]}, cv=3).fit(X, D)
    assert search.best_params_ == {"aaknn__k": 5}


def test_pandas_output_of_a_scaler(data) -> None:
    pandas = pytest.importorskip("pandas")
    X, D = data
    frame = pandas.DataFrame(X, columns=list("abcde"))
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), SABFGS()).fit(frame, D)
    assert list(pipe[-1].feature_names_in_) == list("abcde")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pipe.predict(frame)


class Weighted(Numbers):
    """The adapter with weights. Samples of weight 0 have no part in the targets."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        self.low_, self.high_ = 0.0, 3.0  # the targets of the checks
        D = np.exp(-((np.asarray(y, dtype=float).reshape(-1, 1) - self._grid()) ** 2))
        return super(Numbers, self).fit(X, D / D.sum(axis=1, keepdims=True), sample_weight=sample_weight, **options)  # type: ignore[misc]


LINEAR = {"scaling": "standard", "l2": 0.1, "decay": "fixed", "iterations": 50, "validation_fraction": 0.0}
STEPS = {"scaling": "standard", "iterations": 20}
SETTINGS: dict[str, dict[str, Any]] = {
    "sa-bfgs": LINEAR,
    "rf": {"bootstrap": False, "min_samples": 2, "trees": 2},
    "df-ldl": {**LINEAR, "k": 1, "min_samples": 1},
    "ldl-ldm": {"scaling": "standard", "l1": 0.1, "decay": "fixed", "iterations": 50, "validation_fraction": 0.0, "clusters": 1},
    "cpnn": {"scaling": "standard", "steps": 20, "validation_fraction": 0.0},
    "ldlsf": STEPS,
    "winldl": STEPS,
    "pt-bayes": {"smoothing": 0.1},
    "ldl-scl": {**STEPS, "clusters": 2},
    "pt-svm": {"gamma": 1.0},
    "ldsvr": {"landmarks": 0},
    "ndf": {"trees": 2, "min_samples": 2},
}
# Numbers of samples, or draws of samples, decide numbers of these models: whole weights are not exactly repeated samples.
DRAWN = {"ldl-scl", "pt-svm", "ldsvr", "ndf"}
WEIGHTED = {
    type(f"Weighted{base.__name__}", (Weighted, base), {"__module__": __name__, "__init__": base.__init__}): (name, set_)
    for name, set_ in SETTINGS.items()
    for base in (ALGORITHMS[name],)
}
globals().update({made.__name__: made for made in WEIGHTED})


@pytest.mark.parametrize("made", WEIGHTED, ids=lambda made: made.__name__)
def test_checks_of_sample_weight(made: Any) -> None:
    name, settings = WEIGHTED[made]
    estimator = made(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(estimator_checks, "estimator_checks_generator"):
            found = list(estimator_checks.estimator_checks_generator(estimator))
        else:
            found = list(estimator_checks.check_estimator(estimator, generate_only=True))
    checks = [(check, of) for of, check in found if "sample_weight" in check_name(check)]
    assert len(checks) >= 6
    for check, of in checks:
        if name not in DRAWN or not any(word in check_name(check) for word in ("equivalence", "invariance")):
            run_check(functools.partial(check, of))


def test_sample_weight(data) -> None:
    X, D = data
    weights = np.arange(len(X)) % 4
    whole = SABFGS(**LINEAR).fit(X, D, sample_weight=weights)
    repeated = SABFGS(**LINEAR).fit(np.repeat(X, weights, axis=0), np.repeat(D, weights, axis=0))
    np.testing.assert_allclose(whole.predict(X), repeated.predict(X), atol=1e-7)
    same = repeated.score(np.repeat(X, weights, axis=0), np.repeat(D, weights, axis=0))
    assert whole.score(X, D, sample_weight=weights) == pytest.approx(same, abs=1e-7)
    assert whole.score(X, D) != pytest.approx(same, abs=1e-7)
    assert SABFGS().fit(X, D, sample_weight=np.ones(len(X))).model_digest_ == SABFGS().fit(X, D).model_digest_
    with pytest.raises(InputError, match="ranking, aa-knn, gld-knn use weights; without"):
        ALGORITHMS["aa-knn"]().fit(X, D, sample_weight=weights)
    for wrong, text in ((-weights, "the weight of the sample is -1"), (weights * 0, "the weights of all samples are zero"), (weights[:3], "sample_weight has the shape")):
        with pytest.raises(InputError, match=text):
            SABFGS().fit(X, D, sample_weight=wrong)


def test_bagging(data) -> None:
    """Bagging gives weights to algorithms that use them, and draws samples for the others."""
    X, D = data
    for made in (SABFGS, ALGORITHMS["aa-knn"]):
        assert has_fit_parameter(made(), "sample_weight") == (made is SABFGS)
        found = BaggingRegressor(made(), n_estimators=2, random_state=0).fit(X, D).predict(X)
        assert found.shape == D.shape
        y = np.where(X[:, 0] > np.median(X[:, 0]), "above", "below")
        assert BaggingClassifier(made(labels="class"), n_estimators=2, random_state=0).fit(X, y).score(X, y) > 0.6
    for made in ALGORITHMS.values():
        assert made.fit.__qualname__ == "Estimator.fit" and ("sample_weight" in inspect.signature(made.fit).parameters) == made._weighs


def test_not_fitted() -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    for use in (lambda: SABFGS().predict([[1.0]]), lambda: check_is_fitted(SABFGS()), lambda: SABFGS().save("never.model")):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            use()
    assert not os.path.exists("never.model")


# Pickle and other processes.


def test_pickle_in_another_process(data, tmp_path) -> None:
    X, D = data
    model = StructRF(trees=5).fit(X, D)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params() == model.get_params()
    assert again.learning_curve_.keys() == model.learning_curve_.keys()
    assert np.array_equal(again.predict(X), model.predict(X))
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "X.npy", X)
    code = """
        import pickle, sys
        import numpy as np
        folder = sys.argv[1]
        with open(folder + "/model.pickle", "rb") as file:
            model = pickle.load(file)
        np.save(folder + "/P.npy", model.predict(np.load(folder + "/X.npy")))
        assert "sklearn" not in sys.modules
    """
    child = inner(code, str(tmp_path))
    assert child.returncode == 0, child.stderr
    assert np.array_equal(np.load(tmp_path / "P.npy"), model.predict(X))


def test_pickle_of_another_version(data) -> None:
    """A pickle has the model file, and the binary decides whether it reads the file. A new parameter gets its default."""
    X, D = data
    model = StructRF(trees=5).fit(X, D)
    state = dict(vars(model))
    del state["max_depth"]
    older = StructRF.__new__(StructRF)
    older.__setstate__(state)
    assert older.get_params() == model.get_params()
    assert np.array_equal(older.predict(X), model.predict(X))
    state["model_"] = model.model_[:-10]
    broken = StructRF.__new__(StructRF)
    broken.__setstate__(state)
    with pytest.raises(coppice_ldl.CoppiceError, match="model"):
        broken.predict(X)


def test_joblib(data) -> None:
    joblib = pytest.importorskip("joblib")
    X, D = data
    with joblib.parallel_backend("loky", n_jobs=2):
        together = cross_val_score(StructRF(trees=5), X, D, cv=KFold(4))
    assert np.array_equal(together, cross_val_score(StructRF(trees=5), X, D, cv=KFold(4)))
    fitted = joblib.Parallel(n_jobs=2)(joblib.delayed(StructRF(trees=5, random_state=seed, n_jobs=1).fit)(X, D) for seed in range(4))
    for seed, model in enumerate(fitted):
        assert model.model_digest_ == StructRF(trees=5, random_state=seed).fit(X, D).model_digest_
        assert np.array_equal(model.predict(X), StructRF(trees=5, random_state=seed).fit(X, D).predict(X))


def test_import_leaves_scikit_learn_alone() -> None:
    code = """
        import sys
        import coppice_ldl
        import numpy as np
        X = np.eye(6)
        model = coppice_ldl.SABFGS().fit(X, np.full((6, 2), 0.5))
        try:
            coppice_ldl.SABFGS().predict(X)
        except coppice_ldl.NotFittedError:
            pass
        repr(model), model._repr_html_(), model.predict(X)
        print([name for name in ("sklearn", "pandas", "scipy", "tqdm") if name in sys.modules])
    """
    child = inner(code)
    assert child.stdout == "[]\n", child.stdout + child.stderr


def test_invalid_input_is_an_input_error() -> None:
    with pytest.raises(InputError, match="Expected 2D array, got 1D array instead"):
        SABFGS().fit(np.ones(3), np.ones((3, 2)))
