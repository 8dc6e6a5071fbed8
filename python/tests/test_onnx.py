"""ONNX files predict in ONNX Runtime as the models do in Coppice."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

import numpy as np
import pytest
from conftest import SMALL, make

import coppice_ldl
from coppice_ldl import AAKNN, DLDL, LDSVR, NDF, SABFGS, AOSOLDLogitBoost, CoppiceError, Ensemble, LDLForest, LDLogitBoost, RandomForest, StructRF

onnxruntime = pytest.importorskip("onnxruntime")

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "export-onnx.md"
ROWS = 1000
TREES = "TreeEnsembleRegressor"


def reference(path: pathlib.Path, rows: np.ndarray, found: np.ndarray) -> None:
    """Compare some predictions with the reference implementation of ONNX, if the package is there."""
    try:
        from onnx.reference import ReferenceEvaluator
    except ImportError:
        return
    some = slice(0, ROWS, 50)
    with np.errstate(all="ignore"):
        want = ReferenceEvaluator(str(path)).run(["predictions"], {"features": rows[some]})[0]
    assert np.abs(want - found[some]).max() <= 1e-5 * max(1, np.abs(found).max())


def thresholds(path: pathlib.Path) -> list[tuple[int, np.float32]]:
    """Return the features and thresholds of the trees of a file; none without the package onnx. The package checks the file."""
    try:
        import onnx
    except ImportError:
        return []
    onnx.checker.check_model(str(path), full_check=True)
    found: list[tuple[int, np.float32]] = []
    for node in onnx.load(str(path)).graph.node:
        if node.op_type == TREES:
            a = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            found += [(at, np.float32(value)) for at, value, mode in zip(a["nodes_featureids"], a["nodes_values"], a["nodes_modes"]) if mode != b"LEAF"]
    return found


def samples(path: pathlib.Path, features: int, X: np.ndarray) -> np.ndarray:
    """Return samples of X, samples of zeros, samples far away, and samples on the thresholds of trees and next to them."""
    draw = np.random.RandomState(7)
    rows = draw.normal(size=(ROWS, features)).astype(np.float32) * np.float32(3.0) ** draw.randint(-2, 3, size=(ROWS, 1)).astype(np.float32)
    rows[: len(X)] = X[:ROWS]
    rows[:5] = 0
    rows[5] = -0.0
    splits = thresholds(path)
    for row in rows[6:700] if splits else []:
        for at in draw.randint(len(splits), size=3):
            feature, value = splits[at]
            row[feature] = [np.nextafter(value, np.float32(-np.inf)), value, value, np.nextafter(value, np.float32(np.inf))][at % 4]
    return rows


def check(model: Any, path: pathlib.Path, X: np.ndarray, near: float, shape: tuple[int, ...] = ()) -> None:
    """Export a model and compare what ONNX Runtime predicts with what the model predicts."""
    assert model.export(path, card=False)["format"] == "onnx"
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rows = samples(path, X.shape[1], X)
    want = np.asarray(model.predict(rows.reshape(-1, *shape) if shape else rows)).reshape(ROWS, -1)
    found = session.run(["predictions"], {"features": rows})[0]
    assert found.shape == want.shape and found.dtype == np.float32
    scale = max(1, np.abs(want).max())
    assert np.abs(found.astype(np.float64) - want).max() <= near * scale
    reference(path, rows, found)
    about = session.get_modelmeta().custom_metadata_map
    assert about["model_digest"] == model.model_digest_ and about["algorithm"] == model._algorithm
    rows = rows[:3].copy()
    rows[1, 0], rows[2, -1] = np.nan, np.inf
    found = session.run(["predictions"], {"features": rows})[0]
    assert np.isfinite(found[0]).all() and np.isnan(found[1:]).all()


TOLERANCES = {"ldlf": 1e-5, "ndf": 1e-5, "dldl": 1e-5, "aa-bp": 1e-5, "ensemble": 1e-5}


@pytest.mark.parametrize("name", sorted(coppice_ldl.ALGORITHMS))
def test_algorithms(name: str, tmp_path: pathlib.Path) -> None:
    """Each algorithm exports. Values repeat, so that samples meet thresholds and have the same distances."""
    X, D = make(150)
    X = np.round(X * 4) / 4
    kind = coppice_ldl.ALGORITHMS[name]
    more: dict[str, Any] = dict(SMALL.get(name, {}))
    if kind._predicts == "number":
        D, more = np.argmax(D, axis=1) + 20.0 + (X[:, 0] > 0), {**more, "labels": "age", "sigma": 1.5, "range": "15:30"}
    elif kind._predicts == "targets":
        D = np.tanh(X[:, :3]) * 5
    check(kind(random_state=3, **more).fit(X, D), tmp_path / "m.onnx", X, TOLERANCES.get(name, 1e-6))


X, D = make(400, 12, 5)
LARGE = {
    "forest of 500 trees": (StructRF(trees=500, min_samples=4), 1e-6),
    "single labels, 500 trees": (RandomForest(trees=500, min_samples=4), 1e-6),
    "300 trees": (AOSOLDLogitBoost(rounds=300, validation_fraction=0.0), 1e-6),
    "300 trees of labels": (LDLogitBoost(rounds=60, validation_fraction=0.0), 1e-6),
    "1000 trees": (AOSOLDLogitBoost(rounds=1000, validation_fraction=0.0), 5e-6),
    "1000 trees of labels": (LDLogitBoost(rounds=200, validation_fraction=0.0), 5e-6),
    "soft trees": (LDLForest(steps=500, validation_fraction=0.0), 1e-5),
    "soft trees of a network": (LDLForest(trees=2, depth=4, features="mlp", hidden="16,8", steps=100), 1e-5),
    "layer normalisation": (DLDL(hidden="16,8", layer_norm=True, steps=100), 1e-5),
    "perceptrons": (NDF(trees=3, iters=20, starts=1, hidden="0"), 1e-5),
    "targets": (StructRF(trees=9, labels="bounded", bounds=(-9, 9)), 1e-6),
    "members": (Ensemble(members="sa-bfgs,structrf:trees=9,ldlf:trees=2:steps=50,pt-bayes", inner_folds=2), 1e-5),
}


@pytest.mark.parametrize("case", LARGE)
def test_large(case: str, tmp_path: pathlib.Path) -> None:
    model, near = LARGE[case]
    check(model.fit(X, np.tanh(X[:, :3]) * 4 if case == "targets" else D), tmp_path / "m.onnx", X, near)


@pytest.mark.parametrize("model", [AAKNN(k=3), LDSVR(), StructRF(trees=9), SABFGS()], ids=lambda model: model._algorithm)
def test_sparse(model: Any, tmp_path: pathlib.Path) -> None:
    """A model of sparse samples predicts dense ones."""
    sparse = pytest.importorskip("scipy.sparse")
    features = np.where(np.abs(X) < 1.5, 0, X)
    check(model.fit(sparse.csr_matrix(features), D), tmp_path / "m.onnx", features, 1e-6)


@pytest.mark.parametrize("more", [{"channels": "4,5", "kernel": 3, "pool": 2}, {"channels": "3", "kernel": 3, "pool": 2, "pooling": "average"}, {"channels": "3", "kernel": 2, "padding": 0, "stride": 2, "pool": 1, "crop": 5, "hidden": "none"}], ids=["max", "average", "crop"])
def test_images(more: dict[str, Any], tmp_path: pathlib.Path) -> None:
    images, degrees = make(120, 2 * 6 * 6, 3)
    model = DLDL(features="conv", steps=10, **more).fit(images.reshape(-1, 2, 6, 6), degrees)
    check(model, tmp_path / "m.onnx", images, 1e-5, (2, 6, 6))


def run(model: Any, path: pathlib.Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of an exported model by name."""
    model.export(path, card=False)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs)))


def test_missing(tmp_path: pathlib.Path) -> None:
    """Missing features are replaced as in predict."""
    features = X.copy()
    features[::7, 1] = np.nan
    for missing in ("mean", "median", 0.5):
        model = StructRF(trees=3, missing=missing).fit(features, D)
        found = run(model, tmp_path / "m.onnx", {"features": features.astype(np.float32)})
        assert list(found) == ["predictions"] and np.abs(found["predictions"] - model.predict(features)).max() <= 1e-6


def test_classes(tmp_path: pathlib.Path) -> None:
    y = np.array(["red", "green", "blue"])[np.argmax(D[:, :3], axis=1)]
    model = StructRF(trees=20, labels="class").fit(X, y)
    rows = X.astype(np.float32)
    found = run(model, tmp_path / "m.onnx", {"features": np.concatenate([rows, np.full((1, 12), np.nan, dtype=np.float32)])})
    names = json.loads(onnxruntime.InferenceSession(str(tmp_path / "m.onnx")).get_modelmeta().custom_metadata_map["label_names"])
    assert [names[one] for one in found["predicted_class"][:-1]] == model.predict_class(rows).tolist() and found["predicted_class"][-1] == -1


def test_ages(tmp_path: pathlib.Path) -> None:
    """The expected value, the median and the mode of ages are outputs."""
    model = SABFGS(labels="age", sigma=2, range=(0, 40)).fit(X, np.clip(20 + 5 * X[:, 0], 1, 39))
    rows = X.astype(np.float32)
    found = run(model, tmp_path / "m.onnx", {"features": rows})
    assert list(found) == ["predictions", "expected", "median", "mode"]
    for name in ("expected", "median", "mode"):
        np.testing.assert_allclose(found[name], model.predict_number(rows, kind=name), rtol=0, atol=4e-6)


def test_categories(tmp_path: pathlib.Path) -> None:
    """Columns of texts in a CSV file are inputs of their own."""
    colours = np.array(["red", "green", "dark blue"])[np.arange(len(X)) % 3]
    lines = ["a,colour,b,label_x,label_y"] + [f"{row[0]},{colour},{row[1]},{d},{1 - d}" for row, colour, d in zip(X, colours, D[:, 0])]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    for command in (
        "train --local --data data.csv --categories colour --algorithm sa-bfgs --model-out m.model",
        "model export m.model --out m.onnx --card none",
        "predict --model m.model --data data.csv --out p.npz",
    ):
        subprocess.run([coppice_ldl.binary(), *command.split()], cwd=tmp_path, check=True, capture_output=True)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    inputs = {"features": X[:, :2].astype(np.float32), "category_colour": colours.astype(object).reshape(-1, 1)}
    with np.load(tmp_path / "p.npz") as arrays:
        assert np.abs(session.run(["predictions"], inputs)[0] - arrays["predictions"]).max() <= 1e-6
    with pytest.raises(Exception, match="(?i)category"):
        session.run(None, {**inputs, "category_colour": np.full((len(X), 1), "pink", dtype=object)})


def test_no_graph(tmp_path: pathlib.Path) -> None:
    """A model without a graph is refused, and nothing is written."""
    for model in (NDF(trees=2, iters=5, starts=1, routing="hard"), Ensemble(members="sa-bfgs,ndf:trees=2:iters=5:routing=hard", weights="mean")):
        with pytest.raises(CoppiceError, match=re.escape('routing=soft has a graph; the format npz has its arrays')):
            model.fit(X, D).export(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_guide(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of the guide run."""
    monkeypatch.chdir(tmp_path)
    StructRF(trees=3, random_state=1).fit(X[:, :4], D).export("plants.onnx", card=False)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102
    assert names["predictions"].shape == (1, 5) and len(names["labels"]) == 5 and len(names["digest"]) == 64
