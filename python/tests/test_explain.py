"""Explanations: SHAP values that sum as stated and equal those of the package shap, importances and weights."""

from __future__ import annotations

import struct
import sys
from typing import Any

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, AOSOLDLogitBoost, Ensemble, GLDBFGS, InputError, LDLBoost, LDLLRR, LDLogitBoost, LDLSF, RandomForest, SABFGS, StructRF, _explain
from conftest import make

FORESTS = [StructRF(trees=5), RandomForest(trees=5, min_samples=10)]
BOOSTERS = [LDLogitBoost(rounds=4), AOSOLDLogitBoost(rounds=6), LDLBoost(rounds=6)]


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def tensors(model: bytes) -> dict[str, np.ndarray]:
    """Return the tensors of a model file (algorithms/kit/modelfile/FORMAT.md)."""
    at = 22
    at += 1 + model[at]
    (count,) = struct.unpack_from("<I", model, at)
    at += 4
    found = {}
    for _ in range(count):
        name = model[at + 1 : at + 1 + model[at]].decode()
        at += 1 + model[at]
        dtype, dimensions = model[at], model[at + 1]
        at += 2
        shape = struct.unpack_from(f"<{dimensions}Q", model, at)
        at += 8 * dimensions
        kind = {1: "<f4", 2: "<f8", 3: "<u4"}[dtype]
        n = int(np.prod(shape, dtype=np.int64))
        found[name] = np.frombuffer(model, kind, n, at).reshape(shape)
        at += n * np.dtype(kind).itemsize
    return found


def shap_trees(model: bytes, labels: int) -> list[dict[str, Any]]:
    """Return the trees of a model file as the package shap reads them: a sample goes left if it is at most the threshold."""
    t = tensors(model)
    trees, node, leaf = [], 0, 0
    for number, (nodes, leaves) in enumerate(zip(t["nodes"], t["leaves"])):
        of = slice(node, node + nodes)
        split = t["feature"][of] != 2**32 - 1
        left = np.where(split, t["left"][of].astype(np.int64), -1)
        values = np.zeros((nodes, labels))
        own = t["leaf"][leaf : leaf + leaves][t["left"][of][~split]]
        if own.shape[1] == labels:
            values[~split] = own
        else:
            values[~split, number % labels] = own[:, 0]
        trees.append(
            {
                "children_left": left,
                "children_right": np.where(split, left + 1, -1),
                "children_default": left,
                "features": np.where(split, t["feature"][of].astype(np.int64), -1),
                "thresholds": np.nextafter(t["threshold"][of], -np.inf),
                "values": values,
                "node_sample_weight": t["samples"][of].astype(np.float64),
            }
        )
        node, leaf = node + nodes, leaf + leaves
    return trees


@pytest.mark.parametrize("estimator", FORESTS, ids=lambda one: type(one).__name__)
def test_forests_sum_to_the_prediction(estimator: Any) -> None:
    X, D = make(150)
    model = estimator.fit(X, D)
    found = model.explain(X[:100])
    assert found.values.shape == (100, 5, 4) and found.base_values.shape == (100, 4) and found.data.shape == (100, 5)
    assert np.abs(found.base_values + found.values.sum(axis=1) - model.predict(X[:100])).max() < 1e-6
    assert np.array_equal(found.data, X[:100].astype(np.float32))
    assert list(found.output_names) == list(model.label_names_)


@pytest.mark.parametrize("estimator", BOOSTERS, ids=lambda one: type(one).__name__)
def test_boosters_sum_to_the_score(estimator: Any) -> None:
    X, D = make(150)
    model = estimator.fit(X, D)
    found = model.explain(X[:100])
    assert np.abs(softmax(found.base_values + found.values.sum(axis=1)) - model.predict(X[:100])).max() < 1e-6


@pytest.mark.parametrize("estimator", FORESTS + BOOSTERS, ids=lambda one: type(one).__name__)
def test_equal_to_shap(estimator: Any) -> None:
    shap = pytest.importorskip("shap")
    X, D = make(150)
    model = estimator.fit(X, D)
    found = model.explain(X[:100])
    assert isinstance(found, shap.Explanation)
    trees = shap_trees(model.model_, 4)
    theirs = shap.TreeExplainer({"trees": trees, "input_dtype": np.float64}, feature_perturbation="tree_path_dependent")
    rows = X[:100].astype(np.float32).astype(np.float64)
    values, base = np.asarray(theirs.shap_values(rows, check_additivity=False)), np.asarray(theirs.expected_value)
    if values.shape[0] == 4:  # shap before 0.45 has the labels first
        values = np.moveaxis(values, 0, -1)
    if estimator in FORESTS:
        values, base = values / len(trees), base / len(trees)
    else:  # scores are sums less their mean over the labels, times a factor
        t = tensors(model.model_)
        values = t["factor"] * (values - values.mean(axis=2, keepdims=True))
        base = t["start"] + t["factor"] * (base - base.mean())
    assert np.abs(found.values - values).max() < 1e-9
    assert np.abs(found.base_values - base).max() < 1e-9
    assert found[:, :, 0].values.shape == (100, 5)


def test_without_shap(monkeypatch: pytest.MonkeyPatch) -> None:
    X, D = make(60)
    monkeypatch.setitem(sys.modules, "shap", None)
    found = StructRF(trees=2).fit(X, D).explain(X)
    assert type(found) is _explain.Explanation
    assert found.feature_names == [f"feature {i}" for i in range(5)] and len(found.output_names) == 4


def test_frames_and_missing_values() -> None:
    pandas = pytest.importorskip("pandas")
    X, D = make(60)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = StructRF(trees=2, missing="drop").fit(frame, D)
    holes = frame.copy()
    holes.iloc[3, 1] = np.nan
    found = model.explain(holes[list("edcba")])
    assert list(found.feature_names) == list("abcde")
    assert np.isnan(found.values[3]).all() and not np.isnan(np.delete(found.values, 3, axis=0)).any()
    assert np.allclose(found.values[4], model.explain(frame).values[4])


def test_targets_have_their_units() -> None:
    X, D = make(80)
    targets = 50 + 100 * D
    model = StructRF(trees=3, labels="bounded", bounds=[(40, 160)]).fit(X, targets)
    found = model.explain(X)
    assert np.abs(found.base_values + found.values.sum(axis=1) - model.predict(X)).max() < 1e-4
    assert found.base_values.min() > 45


def test_importances() -> None:
    draw = np.random.RandomState(1)
    X = draw.normal(size=(300, 6))
    scores = np.column_stack([3 * X[:, 2], 2 * X[:, 4], np.zeros(300)])
    D = softmax(scores)
    for estimator in [StructRF(trees=10), RandomForest(trees=10), *BOOSTERS]:
        found = estimator.fit(X, D).feature_importances_
        assert found.shape == (6,) and abs(found.sum() - 1) < 1e-9
        assert set(np.argsort(found)[-2:]) == {2, 4}


@pytest.mark.parametrize("estimator", [SABFGS(), LDLLRR(), SABFGS(scaling="standard")], ids=str)
def test_weights_are_of_raw_features(estimator: Any) -> None:
    X, D = make(100)
    X = X * [1, 10, 100, 1, 1] + [0, 5, 0, 0, -3]
    model = estimator.fit(X, D)
    assert model.coef_.shape == (4, 5) and model.intercept_.shape == (4,)
    assert np.abs(softmax(X.astype(np.float32) @ model.coef_.T + model.intercept_) - model.predict(X)).max() < 1e-5


def test_other_links() -> None:
    X, D = make(60)
    assert LDLSF().fit(X, D).coef_.shape == (4, 5)
    scores = (model := GLDBFGS(bounds=[(0, 1)]).fit(X, D)).intercept_ + X.astype(np.float32) @ model.coef_.T
    assert np.abs((np.tanh(scores) + 1) / 2 - model.predict(X)).max() < 1e-5


def test_what_other_estimators_lack() -> None:
    X, D = make(60)
    for estimator in (AAKNN(k=3), Ensemble(members="sa-bfgs,aa-knn", inner_folds=2)):
        model = estimator.fit(X, D)
        for attribute in ("feature_importances_", "coef_", "intercept_"):
            assert not hasattr(model, attribute)
        with pytest.raises(InputError, match="forests and boosters"):
            model.explain(X)
    with pytest.raises(AttributeError, match="linear models"):
        StructRF(trees=2).fit(X, D).coef_
    assert not hasattr(StructRF(), "feature_importances_")
    with pytest.raises(coppice_ldl.NotFittedError):
        StructRF().explain(X)
    with pytest.raises(InputError, match="features"):
        StructRF(trees=2).fit(X, D).explain(X[:, :3])


def test_a_loaded_model(tmp_path: Any) -> None:
    X, D = make(60)
    model = StructRF(trees=2).fit(X, D)
    model.save(tmp_path / "m")
    loaded = coppice_ldl.load(tmp_path / "m")
    assert np.array_equal(loaded.feature_importances_, model.feature_importances_)
    assert np.array_equal(loaded.explain(X).values, model.explain(X).values)
