"""Messages name arguments as Python spells them, and their advice can be followed."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any, Callable

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, InputError, LDLForest, OptionError, StructRF, _process, datasets, metrics
from coppice_ldl._texts import text_of
from conftest import make

X, D = make(60, 4, 3)
Y = np.arange(60) % 3
HOLES = np.where(np.arange(240).reshape(60, 4) == 13, np.nan, X)  # row 3, feature 1
EMPTY = np.where(np.arange(4) == 2, np.nan, X)


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        (["nothing here"], "nothing here"),
        ([{"option": "set", "value": "trees"}, ': "x" is not'], 'trees: "x" is not'),
        ([{"option": "set", "value": "keep_predictions=5"}], "keep_predictions=5"),
        ([{"option": "labels", "value": "age"}, " needs ", {"option": "range", "value": "LOW:HIGH"}, ", such as ", {"option": "range", "value": "0:69"}], 'labels="age" needs range=(LOW, HIGH), such as range=(0, 69)'),
        ([{"option": "missing", "value": "drop"}, "; ", {"option": "missing", "value": "0"}, "; ", {"option": "missing"}], 'missing="drop"; missing=0; `missing`'),
        (["/data/--labels age"], "/data/--labels age"),
        (["give ", {"option": "label-columns"}], "give `label_columns`"),
        ([{"option": "decimal", "value": "."}, " reads points, ", {"option": "thousands", "value": ","}, " commas"], 'decimal="." reads points, thousands="," commas'),
        ([{"value_of": "set", "value": "lambda"}, ": low"], "lambda_: low"),
        ([{"option": "range"}, ": want two whole numbers"], "range: want two whole numbers"),
        (["give it to ", {"command": "dataset import"}, " with ", {"option": "labels"}], "give it to import_dataset with `labels`"),
        ([{"option": "shape"}, ", such as ", {"value_of": "shape", "value": "1x8x8"}, " for 64 features"], "`shape`, such as (1, 8, 8) for 64 features"),
        (['bias: "1" is not ', {"value_of": "", "value": "true"}, " or ", {"value_of": "", "value": "false"}], 'bias: "1" is not True or False'),
        ([{"value_of": "", "value": "+Inf"}, " is not a finite number"], "inf is not a finite number"),
        ([{"option": "threads", "value": "5000"}, ": want 1 to 1024"], "n_jobs=5000: want 1 to 1024"),
        ([{"option": "normalize"}, " divides; ", {"option": "yes"}, " leaves them out"], "normalize=True divides; replace=True leaves them out"),
        (["with ", {"option": "local"}, ", every dataset must be a file"], "with server=None, every dataset must be a file"),
    ],
)
def test_text_of(parts: list[Any], want: str) -> None:
    assert text_of(parts) == want


WRONG: dict[str, Callable[[], Any]] = {
    "a number of neighbours": lambda: AAKNN(k=0).fit(X, D),
    "a list": lambda: StructRF(trees=[5]).fit(X, D),
    "an array": lambda: StructRF(trees=np.array([5])).fit(X, D),
    "a number of features": lambda: StructRF(features=1).fit(X, D),
    "a list of neighbours": lambda: AAKNN(k=[1, 5]).fit(X, D),
    "a list for missing": lambda: AAKNN(missing=[1]).fit(X, D),
    "a word for missing": lambda: AAKNN(missing="zzz").fit(X, D),
    "True for missing": lambda: AAKNN(missing=True).fit(X, D),
    "a list for sigma": lambda: AAKNN(labels="age", sigma=[2], range=(0, 9)).fit(X, Y),
    "ages without sigma": lambda: AAKNN(labels="age").fit(X, Y),
    "ages without range": lambda: AAKNN(labels="age", sigma=1).fit(X, Y),
    "an age outside": lambda: AAKNN(labels="age", sigma=1, range=(1, 2)).fit(X, Y),
    "a missing age": lambda: AAKNN(labels="age", sigma=1, range=(0, 2)).fit(X, np.where(Y == 1, np.nan, Y)),
    "a range of the wrong order": lambda: AAKNN(labels="age", sigma=1, range=(5, 1)).fit(X, Y),
    "a range of other labels": lambda: AAKNN(range=(0, 9)).fit(X, D),
    "a kind of labels": lambda: AAKNN(labels="foo").fit(X, D),
    "verbose": lambda: AAKNN(verbose="yes").fit(X, D),
    "n_jobs": lambda: AAKNN(n_jobs=0).fit(X, D),
    "a negative seed": lambda: AAKNN(random_state=-1).fit(X, D),
    "a large seed": lambda: AAKNN(random_state=2**64).fit(X, D),
    "a missing value": lambda: AAKNN().fit(HOLES, D),
    "a column without values": lambda: AAKNN(missing="mean").fit(EMPTY, D),
    "sums": lambda: AAKNN().fit(X, 2 * D),
    "one label": lambda: AAKNN().fit(X, np.ones((60, 1))),
    "classes": lambda: AAKNN().fit(X, Y),
    "three dimensions": lambda: AAKNN().fit(X.reshape(60, 2, 2), D),
    "images without conv": lambda: LDLForest().fit(X.reshape(60, 1, 2, 2), D),
    "three dimensions in predict": lambda: AAKNN().fit(X, D).predict(X.reshape(60, 2, 2)),
    "no model": lambda: coppice_ldl.load(b"abc"),
    "a kind of data": lambda: datasets.generate("foo"),
    "a range of a file": lambda: datasets.load("none.csv", labels="age", sigma=1, range=(0, 1, 2)),
    "clip": lambda: metrics.kl([[1.0, 0.0]], [[1.0, 0.0]], clip="x"),
    "the name of a keyword": lambda: coppice_ldl.Ranking(lambda_="x").fit(X, D),
    "an array for labels": lambda: AAKNN(labels=np.array(["age", "class"])).fit(X, D),
    "an array for n_jobs": lambda: AAKNN(n_jobs=np.array([1, 2])).fit(X, D),
    "an array for normalize": lambda: AAKNN(normalize=np.array([1, 0])).fit(X, D),
    "a list of lists": lambda: LDLForest(hidden=[[8]], features="mlp").fit(X, D),
    "another number of labels": lambda: AAKNN().fit(X, D).score(X, D[:, :2] / D[:, :2].sum(1, keepdims=True)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_input(call: Callable[[], Any]) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert "--" not in str(error.value)
    assert "/dev/fd" not in str(error.value)


def test_advice_about_missing_values() -> None:
    model = AAKNN().fit(X, D)
    with pytest.raises(InputError, match='missing="drop" leaves such samples out'):
        model.predict(HOLES)
    found = model.set_params(missing="drop").predict(HOLES)
    assert np.isnan(found[3]).all() and not np.isnan(np.delete(found, 3, 0)).any()
    assert np.isfinite(model.set_params(missing=0).predict(HOLES)).all()
    with pytest.raises(InputError, match="mean"):
        model.set_params(missing="mean").predict(HOLES)


def test_dropped_samples_are_told() -> None:
    model = AAKNN(missing="drop")
    with pytest.warns(UserWarning, match="1 of 60 samples"):
        model.fit(HOLES, D)
    for measure in (model.score, model.evaluate):
        with pytest.warns(UserWarning, match="1 of 60 samples have missing values") as told:
            measure(HOLES, D)
        assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(X, D)


def test_unknown_option() -> None:
    for call in (lambda: datasets.generate("smooth", featrues=3), lambda: datasets.load("none.csv", label_colums=["a"])):
        with pytest.raises(OptionError, match="generate: there is no option featrues; did you mean features|load: there is no option label_colums; did you mean label_columns") as error:
            call()
        assert isinstance(error.value, TypeError) and isinstance(error.value, ValueError)


def test_accepted() -> None:
    assert AAKNN().fit(X, D, sample_weight=None).n_labels_ == 3
    assert AAKNN(n_jobs=-2).fit(X, D).model_digest_ == AAKNN(n_jobs=1).fit(X, D).model_digest_
    images = LDLForest(features="conv", shape=(1, 2, 2), channels=[2], kernel=1, pool=1, hidden=np.array([4]), trees=1, depth=2, steps=1)
    assert images.fit(X, D).settings_["shape"] == "1x2x2"
    assert images.fit(X.reshape(60, 1, 2, 2), D).predict(X.reshape(60, 1, 2, 2)).shape == (60, 3)
    loaded = coppice_ldl.load(AAKNN(k=7).fit(X, D).model_)
    assert loaded.settings_["k"] == 7 and loaded.get_params()["k"] == 7


class TestDatasets:
    """Data files and generated data."""

    def test_arrays_by_name(self, tmp_path) -> None:
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "D.npy", D)
        data = datasets.load({"features": tmp_path / "X.npy", "labels": str(tmp_path / "D.npy")})
        assert np.array_equal(data.X, X.astype(np.float32)) and np.allclose(data.D, D)

    def test_range(self, tmp_path) -> None:
        (tmp_path / "a.csv").write_text("x,age\n" + "1,2\n2,3\n" * 10)
        options = {"labels": "age", "label_columns": "age", "sigma": 1}
        one, other = (datasets.load(tmp_path / "a.csv", range=bounds, **options) for bounds in ((0, 9), "0:9"))
        assert one.D.shape == (20, 10) and np.array_equal(one.D, other.D)

    def test_shown(self) -> None:
        data = datasets.generate("random", rows=20, features=6)
        assert repr(data).startswith("<Dataset: X 20 x 6, D 20 x ")
        assert "Files" not in dir(datasets) and "np" not in dir(metrics) and "annotations" not in dir(coppice_ldl)

    def test_frames(self) -> None:
        pandas = pytest.importorskip("pandas")
        data = datasets.generate("random", rows=20, features=6)
        data.label_names = [f"l{i}" for i in range(data.D.shape[1])]
        assert AAKNN().fit(data.frame(), data.label_frame()).label_names_.tolist() == data.label_names
        data.X = np.zeros((20, 1, 3, 4))
        assert isinstance(data.frame(), pandas.DataFrame) and data.frame().shape == (20, 12)


def test_silent_binary(tmp_path, monkeypatch) -> None:
    path = tmp_path / "coppice"
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o755)
    monkeypatch.setenv("COPPICE_BINARY", str(path))
    monkeypatch.setattr(_process, "_HELLO", 0.3)
    with pytest.raises(_process.ProcessError, match="does not answer as coppice does"):
        datasets.generate("smooth", rows=20)


def test_without_standard_files() -> None:
    code = "import os\nfor fd in range(3): os.close(fd)\nfrom coppice_ldl import datasets\nos._exit(datasets.generate('smooth', rows=20).X.shape[0])"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 20


def test_nothing_is_left_open() -> None:
    code = "import gc, coppice_ldl\ncoppice_ldl.datasets.generate('smooth', rows=20)\ncoppice_ldl.close()\ngc.collect()"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], check=False, timeout=60, capture_output=True, text=True)
    assert ended.returncode == 0 and "Warning" not in ended.stderr, ended.stderr
