"""Estimators of classes are classifiers: scikit-learn's checks of classifiers for all algorithms, and its tools."""

from __future__ import annotations

import functools
import pickle
import unittest
import warnings
from typing import Any, Callable

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import coppice_ldl
from coppice_ldl import AAKNN, ALGORITHMS, SABFGS, InputError, Ranking, StructRF
from conftest import SMALL, make
from test_sklearn import NAMES, SKIPPED, VERSION, check_name, run_check

ALL = [algorithm for algorithm, kind in ALGORITHMS.items() if kind._predicts == "distributions"]

# Parameters with which a model of classes is accurate enough for scikit-learn's checks.
ACCURATE: dict[str, dict[str, Any]] = {"aa-bp": {"steps": 200}, "cpnn": {"steps": 100}, "ldl-scl": {"preset": "paper"}}

# check_estimator runs these for classifiers alone. test_sklearn has the other checks.
OF_CLASSIFIERS = """
    check_classifier_data_not_an_array
    check_classifiers_classes
    check_classifiers_one_label
    check_classifiers_regression_target
    check_classifiers_train
    check_classifiers_train(readonly_memmap=True)
    check_classifiers_train(readonly_memmap=True, X_dtype=float32)
    check_decision_proba_consistency
""".split("\n")
CHECKS = sorted([name for name in NAMES if "regressor" not in name and "sample_weight" not in name] + [name.strip() for name in OF_CLASSIFIERS if name.strip()])


@functools.lru_cache(None)
def checks_of(algorithm: str) -> dict[str, Callable[[], None]]:
    """Return the checks that check_estimator runs, by name."""
    made = ALGORITHMS[algorithm](labels="class", **{**SMALL.get(algorithm, {}), **ACCURATE.get(algorithm, {})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(estimator_checks, "estimator_checks_generator"):
            found = list(estimator_checks.estimator_checks_generator(made))
        else:
            found = list(estimator_checks.check_estimator(made, generate_only=True))
    checks = {check_name(check): functools.partial(check, one) for one, check in found}
    return {name: check for name, check in checks.items() if "sample_weight" not in name}  # not all algorithms have weights


@pytest.mark.parametrize("algorithm", ALL)
def test_check_estimator(algorithm: str) -> None:
    """Each check passes, none is missing, and no check is skipped without a reason."""
    found = checks_of(algorithm)
    if VERSION in ((1, 2), (1, 9)):
        assert sorted(found) == CHECKS
    for name, check in found.items():
        try:
            run_check(check)
        except unittest.SkipTest as reason:
            assert name in SKIPPED, f"scikit-learn skips {name}: {reason}"
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error


@pytest.fixture
def classes() -> tuple[np.ndarray, np.ndarray]:
    """Return features and classes whose order as texts is another than as numbers."""
    draw = np.random.RandomState(0)
    kinds = draw.randint(3, size=150)
    return draw.normal(size=(150, 5)) + 2.5 * np.eye(5)[kinds], np.array(["10", "9", "100"])[kinds]


def test_kind_of_estimator(classes) -> None:
    """The parameter labels decides whether an estimator is a classifier, also within a pipeline."""
    for made, of_classes in ((StructRF(labels="class"), True), (StructRF(), False), (StructRF(labels="counts"), False), (Ranking(labels="class"), False)):
        for estimator in (made, make_pipeline(StandardScaler(), made), clone(made)):
            assert (is_classifier(estimator), is_regressor(estimator)) == (of_classes, not of_classes), estimator
            assert hasattr(estimator, "predict_proba") == of_classes, estimator
    with pytest.raises(AttributeError, match='labels="class" makes a classifier'):
        StructRF().predict_proba(classes[0])
    assert callable(StructRF.predict_proba) and "classes_" in str(StructRF.predict_proba.__doc__)


def test_classes_have_the_order_of_numpy(classes) -> None:
    """Columns of predict_proba follow classes_, whatever order the labels of the model have."""
    X, y = classes
    model = AAKNN(k=5, labels="class").fit(X, y)
    assert model.classes_.tolist() == np.unique(y).tolist() == ["10", "100", "9"]
    assert model.label_names_.tolist() == ["9", "10", "100"]
    P = model.predict_proba(X)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    for label, column in zip(model.classes_, P.T):
        near = AAKNN(k=5).fit(X, np.column_stack([y == label, y != label]).astype(float))
        assert np.allclose(near.predict(X)[:, 0], column, atol=1e-6)
    for other in (pickle.loads(pickle.dumps(model)), coppice_ldl.load(model.model_)):
        assert np.array_equal(other.predict_proba(X), P) and np.array_equal(other.predict(X), model.predict(X))
        assert other.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("values", [("no", "yes", "maybe"), (3, 1, -2), (2.0, 0.0, 11.0), (True, False), (b"u", b"t"), (np.int8(4), np.int8(3)), (10**18, 3), ("a", 1)])
def test_types_of_classes(values: tuple) -> None:
    """Classes are predicted as they were given, and score is the accuracy."""
    X, D = make(90)
    kinds = np.empty(90, dtype=object)
    kinds[:] = [values[i] for i in D[:, : len(values)].argmax(axis=1)]
    given = [kinds] if values == ("a", 1) else [kinds, np.array(kinds.tolist()), kinds.tolist()]
    for y in given:
        model = AAKNN(k=3, labels="class").fit(X[:60], y[:60])
        found = model.predict(X[60:])
        hits = [one == other for one, other in zip(found.tolist(), list(y[60:]))]
        assert model.score(X[60:], y[60:]) == np.mean(hits) > 0.5
        if values != ("a", 1):
            assert model.classes_.tolist() == sorted({one.item() if hasattr(one, "item") else one for one in values})


def test_score_counts_unknown_classes_as_errors(classes) -> None:
    X, y = classes
    known = y != "100"
    model = AAKNN(k=5, labels="class").fit(X[known], y[known])
    assert model.score(X, y) == np.mean(model.predict(X) == y) < 1
    assert model.score(X[~known], y[~known]) == 0
    holes = np.where(np.arange(150)[:, None] % 50 == 0, np.nan, X)
    model.set_params(missing="drop")
    with pytest.warns(UserWarning, match="3 of 150 samples have missing values"):
        score = model.score(holes, y)
    kept = ~np.isnan(holes[:, 0])
    assert score == np.mean(model.predict(X[kept]) == y[kept])
    assert np.isnan(model.predict_proba(holes)).all(axis=1).sum() == 3 and model.predict(holes)[0] is None
    gaps = y.astype(object)
    gaps[7] = None
    with pytest.raises(InputError, match="D: row 7: the class is missing"):
        model.set_params(missing=None).score(X, gaps)
    with pytest.raises(InputError, match="inconsistent numbers of samples"):
        model.score(X, y[:9])
    weights = np.arange(150) % 3
    assert model.score(X, y, sample_weight=weights) == pytest.approx(accuracy_score(y, model.predict(X), sample_weight=weights))
    for wrong, text in ((weights - 1, "want a finite number"), (weights[1:], "each of 150 samples"), (weights * 0, "the weight of every sample is 0")):
        with pytest.raises(InputError, match=text):
            model.score(X, y, sample_weight=wrong)


def test_wrong_classes(classes) -> None:
    X, y = classes
    with pytest.raises(InputError, match="Unknown label type: continuous. D: row 0: .* is no whole number; a class is a text"):
        SABFGS(labels="class").fit(X, X[:, 0])
    for kind in ("pt-svm", "df-ldl"):
        with pytest.raises(InputError, match="give (samples of )?two labels or classes"):
            ALGORITHMS[kind](labels="class").fit(X, np.full(150, "one"))
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        SABFGS(labels="class").fit(X, y.reshape(-1, 1))
    model = SABFGS(labels="class").fit(X, y).set_params(labels="distributions")
    with pytest.raises(InputError, match="labels was 'class' in fit"):
        model.predict(X)


# The tools of scikit-learn.


def test_folds_are_stratified(classes) -> None:
    """A number of folds means StratifiedKFold, and scores are accuracies."""
    X, y = classes
    order = np.argsort(y, kind="stable")  # without stratification, a class would be missing in a fold
    X, y = X[order], y[order]
    wanted = []
    for train, test in StratifiedKFold(3).split(X, y):
        wanted.append(accuracy_score(y[test], AAKNN(k=5, labels="class").fit(X[train], y[train]).predict(X[test])))
    model = AAKNN(k=5, labels="class")
    for estimator in (model, make_pipeline(model)):
        for scoring in (None, "accuracy", make_scorer(accuracy_score)):
            assert cross_val_score(estimator, X, y, cv=3, scoring=scoring) == pytest.approx(wanted)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", "roc_auc_ovo_weighted", "f1_macro", "matthews_corrcoef"])
def test_scorers(classes, scoring: str) -> None:
    """Scorers of scikit-learn see the probabilities of the right classes: a wrong order would have a bad score."""
    X, y = classes
    scores = cross_val_score(StructRF(labels="class", trees=30), X, y, cv=3, scoring=scoring, error_score="raise")
    assert scores.min() > (-0.7 if scoring == "neg_log_loss" else 0.75), scores


def test_search_and_predictions_of_folds(classes) -> None:
    X, y = classes
    search = GridSearchCV(make_pipeline(StandardScaler(), AAKNN(labels="class")), {"aaknn__k": [1, 5, 90]}, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_ == {"aaknn__k": 5} and is_classifier(search)
    assert search.classes_.tolist() == ["10", "100", "9"] and search.predict_proba(X).shape == (150, 3)
    found = cross_val_predict(AAKNN(k=5, labels="class"), X, y, cv=3, method="predict_proba")
    assert log_loss(y, found) < 1 and roc_auc_score(y, found, multi_class="ovr", labels=np.unique(y)) > 0.8


def test_meta_estimators(classes) -> None:
    X, y = classes
    forest, linear = StructRF(labels="class", trees=20), SABFGS(labels="class")
    made = (
        CalibratedClassifierCV(forest, cv=3),
        VotingClassifier([("a", forest), ("b", linear), ("c", LogisticRegression())], voting="soft"),
        VotingClassifier([("a", forest), ("b", linear), ("c", LogisticRegression())], voting="hard"),
        StackingClassifier([("a", forest), ("b", linear)], LogisticRegression(), cv=3),
        OneVsRestClassifier(linear),
    )
    for estimator in made:
        fitted = estimator.fit(X[:100], y[:100])
        assert fitted.score(X[100:], y[100:]) > 0.8, estimator
        if getattr(estimator, "voting", "") != "hard":
            P = fitted.predict_proba(X)
            assert np.allclose(P.sum(axis=1), 1, atol=1e-5) and np.mean(fitted.classes_[P.argmax(axis=1)] == fitted.predict(X)) > 0.98
