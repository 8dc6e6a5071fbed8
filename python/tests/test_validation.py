"""Validation samples of one's own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from coppice_ldl import AAKNN, SABFGS, Ensemble, InputError, StructRF, experiment


def samples(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 4)).astype(np.float32)
    D = np.exp(X[:, :3] + draw.normal(size=(rows, 3)) / 3)
    return X, D / D.sum(axis=1, keepdims=True)


def test_validation_samples_decide() -> None:
    X, D = samples(200, 1)
    own = samples(50, 2)
    model = SABFGS().fit(X, D, validation=own)
    assert model.result_["samples"] == {"train": 200, "validation": 50, "test": 0}
    predicted = model.predict(own[0])
    divergence = (own[1] * np.log(own[1] / predicted)).sum(axis=1).mean()
    # Of the fits on the path of weight decays, a later one is the model only if it is better by 0.2 %.
    assert divergence == pytest.approx(np.nanmin(model.learning_curve_["validation_loss"]), rel=2e-3)
    assert model.verify(X, D, validation=own)["verdict"] == "verified"
    weighted = SABFGS().fit(X, D, validation=own, sample_weight=np.arange(200) % 3)
    assert weighted.result_["samples"]["validation"] == 50


def test_classes_validate() -> None:
    X, D = samples(200, 1)
    V, _ = samples(50, 2)
    model = SABFGS(labels="class").fit(X, D.argmax(axis=1), validation=(V, np.arange(50) % 2))
    assert model.result_["samples"]["validation"] == 50


def test_refusals() -> None:
    X, D = samples(200, 1)
    V, E = samples(50, 2)
    with pytest.raises(InputError, match="aa-knn.*no validation samples"):
        AAKNN().fit(X, D, validation=(V, E))
    with pytest.raises(InputError, match=r"want a tuple \(X, D\)"):
        SABFGS().fit(X, D, validation=V)
    with pytest.raises(InputError, match="refit"):
        SABFGS(refit=True).fit(X, D, validation=(V, E))
    with pytest.raises(InputError, match="found 3 features"):
        SABFGS().fit(X, D, validation=(V[:, :3], E))
    with pytest.raises(InputError, match=r"the validation arrays: row 1 .*class .*is unknown"):
        SABFGS(labels="class").fit(X, D.argmax(axis=1), validation=(V, np.where(np.arange(50) == 1, 7, 0)))
    with pytest.raises(InputError, match="give it with `validation`"):
        SABFGS().fit(X, D, validation=(V, E)).verify(X, D)


def test_experiments_validate() -> None:
    X, D = samples(90, 1)
    few = Ensemble(preset="best", members=[SABFGS(), StructRF(trees=3)])
    best = {"algorithm": "best", "settings": {"members": [SABFGS(), StructRF(trees=3)]}}
    spec = {
        "name": "v",
        "folds": 3,
        "measures": ["kl"],
        "methods": [SABFGS(), AAKNN(), best, {"estimator": few, "name": "few"}],
        "datasets": [{"name": f"own{i}", "X": X, "D": D, "validation": samples(40, i)} for i in (2, 3)],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = experiment(spec, verbose=False).runs
    digests = runs.groupby(["method", "dataset"])["digest"].first()
    names = list(dict.fromkeys(runs["method"]))
    assert names[2].startswith("best members=")
    assert digests["sa-bfgs"].nunique() == 2
    assert digests["aa-knn"].nunique() == 1
    assert list(digests[names[2]]) == list(digests["few"])
    for own, text in (
        (X, r"datasets\[0\]: validation: want a tuple \(X, D\)"),
        ((X[:, :3], D), "feature"),
    ):
        with pytest.raises(InputError, match=text):
            experiment({**spec, "datasets": [{"name": "d", "X": X, "D": D, "validation": own}]}, verbose=False)
    with pytest.raises(InputError, match="the dataset is a file, so want the path"):
        experiment({**spec, "datasets": [{"file": "d.csv", "validation": (X, D)}]}, verbose=False)
