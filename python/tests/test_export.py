"""Exported models predict with the code of the guide as `predict` does, and cards and verification say where models come from."""

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
from coppice_ldl import AABP, AAKNN, DLDL, GLDKNN, LDLForest, LDSVR, NDF, SABFGS, Ensemble, InputError, StructRF
from coppice_ldl._binary import binary

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "export.md"
MOST_LINES = 30  # of a predictor


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def guide() -> dict[str, Any]:
    """Return what the blocks of the guide define."""
    names: dict[str, Any] = {}
    for block in blocks():
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102
    return names


def test_lines() -> None:
    """No block has more lines than the guide promises."""
    for block in blocks():
        lines = [line for line in block.split("\n") if line.strip()]
        assert len(lines) <= MOST_LINES and max(map(len, lines)) <= 130, block


def edges(arrays: dict[str, np.ndarray], X: np.ndarray) -> np.ndarray:
    """Return samples of zeros, samples on the thresholds of trees and next to them, and the samples of X."""
    rows = [np.zeros((3, X.shape[1]), dtype=np.float32), np.full((1, X.shape[1]), -0.0, dtype=np.float32), X[:200].astype(np.float32)]
    for name, thresholds in arrays.items():
        if name.split("/")[-1] != "threshold":
            continue
        feature = arrays[name[: -len("threshold")] + "feature"]
        for at in np.flatnonzero(feature != 4294967295)[:200]:
            if feature[at] >= X.shape[1]:  # of ndf: the number of a network
                continue
            on = np.repeat(X[at % len(X)][None].astype(np.float32), 3, axis=0)
            value = np.float32(thresholds[at])
            on[:, feature[at]] = [np.nextafter(value, np.float32(-np.inf)), value, np.nextafter(value, np.float32(np.inf))]
            rows.append(on)
    return np.concatenate(rows)


def check(guide: dict[str, Any], model: Any, X: np.ndarray, path: pathlib.Path) -> None:
    """Compare the predictions of an exported model with those of the model."""
    assert model.export(path, card=False)["out"] == str(path)
    arrays, about = guide["read"](path)
    family = guide["ensemble"] if about["algorithm"] == "ensemble" else guide["FAMILIES"][about["algorithm"]]
    rows = edges(arrays, np.nan_to_num(X))
    if about.get("fill"):
        rows[5:9, 1] = np.nan
    want = model.predict(rows).reshape(len(rows), -1)
    found = guide["predict"](path, rows, family)
    near = 1e-6 if about["algorithm"] in ("structrf", "rf") else 1e-5
    assert found.shape == want.shape and np.isfinite(found).all()
    np.testing.assert_allclose(found, want, rtol=near, atol=near)


@pytest.mark.parametrize("name", sorted(coppice_ldl.ALGORITHMS))
def test_families(name: str, guide: dict[str, Any], tmp_path: pathlib.Path) -> None:
    """Each algorithm has a predictor. Values repeat, so that samples meet thresholds and have the same distances."""
    X, D = make(150)
    X = np.round(X * 4) / 4
    X[:10] = 0
    kind = coppice_ldl.ALGORITHMS[name]
    more: dict[str, Any] = dict(SMALL.get(name, {}))
    if kind._predicts == "number":
        D, more = np.argmax(D, axis=1) + 20.0 + (X[:, 0] > 0), {**more, "labels": "age", "sigma": 1.5, "range": "15:30"}
    elif kind._predicts == "targets":
        D = np.tanh(X[:, :3]) * 5
    check(guide, kind(random_state=3, **more).fit(X, D), X, tmp_path / "m.npz")


X, D = make(120, 2 * 6 * 6, 3)
OTHERS = {
    "sparse neighbours": (AAKNN(k=3), "sparse"),
    "sparse kernel": (LDSVR(), "sparse"),
    "scaled neighbours": (AAKNN(scaling="standard"), "dense"),
    "missing features": (StructRF(trees=3, missing="mean"), "missing"),
    "missing features as a number": (StructRF(trees=3, missing=2.5), "missing"),
    "targets of a forest": (StructRF(trees=3, labels="bounded", bounds=(-9, 9)), "targets"),
    "targets of neighbours": (GLDKNN(), "targets"),
    "targets of a network": (AABP(steps=20, labels="bounded"), "targets"),
    "images": (DLDL(features="conv", channels="4,5", kernel=3, padding=1, pool=2, hidden="8", layer_norm=True, steps=10), "images"),
    "cropped images": (DLDL(features="conv", channels="3", kernel=2, padding=0, stride=2, pool=1, crop=5, hidden="none", steps=10), "images"),
    "mean pooling": (DLDL(features="conv", channels="3", kernel=3, pool=2, pooling="average", steps=10), "images"),
    "soft trees of images": (LDLForest(trees=2, depth=3, features="conv", channels="3", kernel=3, steps=10), "images"),
    "soft trees of a network": (LDLForest(trees=2, depth=3, features="mlp", hidden="7", steps=10), "dense"),
    "hard routing": (NDF(trees=2, iters=5, starts=1, routing="hard"), "dense"),
    "mixed ensemble": (Ensemble(members="sa-bfgs,structrf:trees=3,pt-bayes", inner_folds=2), "dense"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_others(case: str, guide: dict[str, Any], tmp_path: pathlib.Path) -> None:
    model, kind = OTHERS[case]
    features, labels = X.copy(), D
    if kind == "sparse":
        sparse = pytest.importorskip("scipy.sparse")
        features[np.abs(features) < 1.8] = 0
        check(guide, model.fit(sparse.csr_matrix(features), labels), features, tmp_path / "m.npz")
        return
    if kind == "missing":
        features[::7, 1] = np.nan
    if kind == "targets":
        labels = np.tanh(features[:, :3]) * 4
    model.fit(features.reshape(-1, 2, 6, 6) if kind == "images" else features, labels)
    assert model.export(tmp_path / "m.npz", card=False)
    if kind == "images":
        arrays, _ = guide["read"](tmp_path / "m.npz")
        rows = edges(arrays, features)
        found = guide["predict"](tmp_path / "m.npz", rows, guide["FAMILIES"][model._algorithm])
        np.testing.assert_allclose(found, model.predict(rows.reshape(-1, 2, 6, 6)), rtol=1e-5, atol=1e-5)
    else:
        check(guide, model, features, tmp_path / "m.npz")


def test_json_has_the_arrays(tmp_path: pathlib.Path) -> None:
    """The JSON of a model has the same arrays as its NumPy file, to the bit."""
    model = coppice_ldl.ALGORITHMS["ldlogitboost"](rounds=3).fit(X, D)
    model.export(tmp_path / "m.npz", card=False)
    model.export(tmp_path / "m.json", card=False)
    text = json.loads((tmp_path / "m.json").read_text())
    with np.load(tmp_path / "m.npz") as arrays:
        assert {"about", *text["tensors"]} == set(arrays)
        assert json.loads(str(arrays["about"][0])) == text["about"]
        for name, one in text["tensors"].items():
            values = np.array(one["data"], dtype=one["dtype"]).reshape(one["shape"])
            assert values.dtype == arrays[name].dtype and values.tobytes() == arrays[name].tobytes()


def test_card(tmp_path: pathlib.Path) -> None:
    """The card is Markdown with front matter and JSON, and export writes both."""
    model = StructRF(trees=2).fit(X, D)
    found = model.export(tmp_path / "m.npz", license="mit")
    assert found["cards"] == [str(tmp_path / "m.card.md"), str(tmp_path / "m.card.json")]
    text = (tmp_path / "m.card.md").read_text(encoding="utf-8")
    card = json.loads((tmp_path / "m.card.json").read_text(encoding="utf-8"))
    assert card["digest"] == model.model_digest_ and card["license"] == "mit" and card["name"] == "m"
    assert card == {**model.card("json", name="m", license="mit"), "file": "m.npz"} and text.replace(" (`m.npz`)", "") == model.card(name="m", license="mit")
    assert not card["held_out"] and "model-index" not in text and model.model_digest_ in text
    yaml = pytest.importorskip("yaml")
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["license"] == "mit" and front["library_name"] == "coppice-ldl" and "structrf" in front["tags"]
    model.export(tmp_path / "m.npz", card=tmp_path / "README.md")
    assert (tmp_path / "README.md").read_text(encoding="utf-8").startswith("---\n")


def test_card_of_the_hub(tmp_path: pathlib.Path) -> None:
    """The library of Hugging Face reads the measures of a card on held-out samples."""
    hub = pytest.importorskip("huggingface_hub")
    np.savez(tmp_path / "d.npz", features=X, labels=D)
    words = ["train", "--local", "--data", "d.npz", "--algorithm", "structrf", "--set", "trees=2", "--test-fraction", "0.25", "--model-out", "m.model"]
    for command in (words, ["model", "card", "m.model", "--out", "README.md", "--license", "mit"]):
        subprocess.run([binary(), *command], cwd=tmp_path, check=True, capture_output=True)
    found = hub.ModelCard.load(tmp_path / "README.md").data
    card = coppice_ldl.load(tmp_path / "m.model").card("json")
    assert found.license == "mit" and found.library_name == "coppice-ldl" and found.model_name == "m"
    assert {one.metric_type: one.metric_value for one in found.eval_results} == {name: one["mean"] for name, one in card["measures"].items()}


def test_verify(tmp_path: pathlib.Path) -> None:
    """A model is verified from its arrays. Other data, other weights and missing weights have other verdicts."""
    model = SABFGS(iterations=4).fit(X, D)
    found = model.verify(X, D)
    assert found["verdict"] == "verified" and found["trained_digest"] == model.model_digest_ and found["same_measures"]
    assert found["model"] == model.verify(X + 1, D)["model"] == "the model"
    assert model.verify(X, D, only_data=True)["verdict"] == "same data"
    other = model.verify(X + 1, D)
    assert other["verdict"] == "other data" and not other["data"]["same"] and other["reason"]
    first = DLDL(hidden="4", steps=5).fit(X, D)
    first.save(tmp_path / "first.model")
    second = DLDL(hidden="4", steps=5, init_from=str(tmp_path / "first.model")).fit(X, D)
    lacks = second.verify(X, D)
    assert lacks["verdict"] == "cannot verify" and "`init_from`" in lacks["reason"] and "--" not in lacks["reason"]
    assert second.verify(X, D, init_from=tmp_path / "first.model")["verdict"] == "verified"
    classes = StructRF(trees=2, labels="class").fit(X, np.argmax(D, axis=1))
    assert classes.verify(X, np.argmax(D, axis=1))["verdict"] == "verified"
    weights = np.arange(len(X)) % 3
    weighted = SABFGS(iterations=4).fit(X, D, sample_weight=weights)
    assert weighted.verify(X, D, sample_weight=weights)["verdict"] == "verified"
    assert weighted.verify(X, D, sample_weight=weights + 1)["verdict"] == "other data"
    with pytest.raises(InputError, match="`sample_weight`"):
        weighted.verify(X, D)
    loaded = coppice_ldl.load(tmp_path / "first.model")
    assert loaded.verify(X, D)["verdict"] == "verified"
    with pytest.raises(InputError):
        model.verify(X, D[:5])


def test_wrong_exports(tmp_path: pathlib.Path) -> None:
    model = StructRF(trees=1).fit(X, D)
    for path, format, card, text in (
        ("m.pkl", None, True, "format='pkl': want one of onnx, npz, json"),
        ("m.npz", "pmml", True, "format='pmml'"),
        ("m.npz", None, "card.txt", "the name must end in .md"),
    ):
        with pytest.raises(InputError, match=re.escape(text)):
            model.export(tmp_path / path, format, card=card)
    with pytest.raises(InputError, match="format='html'"):
        model.card("html")
    with pytest.raises(coppice_ldl.NotFittedError):
        StructRF().card()
    assert list(tmp_path.iterdir()) == []


def test_verify_on_a_cluster(server: str) -> None:
    """A cluster trains the same model again."""
    found = SABFGS(iterations=4).fit(X, D).verify(X, D, server=server)
    assert found["verdict"] == "verified" and found["trained_on"] == "cluster"
