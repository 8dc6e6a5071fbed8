"""Inputs that could give a wrong result without a word."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, InputError, SABFGS, _arrays, _process, datasets, metrics
from conftest import make

X, D = make(60, 4, 3)
Y = np.arange(60) % 3


def test_dropped_samples_have_no_class() -> None:
    model = AAKNN(missing="drop").fit(np.where(X > 1.5, np.nan, X), D)
    asked = np.vstack([X[:1], np.full((1, 4), np.nan)])
    assert model.predict_class(asked)[1] is None
    assert model.predict_class(asked)[0] in model.label_names_


def test_classes_keep_their_type() -> None:
    for values in (Y, Y.astype(float), np.array(["a", "b", "c"])[Y], Y == 1, np.array([b"x", b"y", b"z"])[Y]):
        model = AAKNN(k=1, labels="class").fit(X, values)
        found = model.predict_class(X)
        assert np.array_equal(found, values), (found[:3], values[:3])
        assert found.dtype.kind == values.dtype.kind or found.dtype == object
    assert AAKNN(k=1, labels="class").fit(X, list(Y)).classes_.tolist() == [0, 1, 2]
    assert AAKNN(k=1).fit(X, D).predict_class(X)[0].startswith("label_")


@pytest.mark.parametrize("values", [[1, "1", 2], [" a", "a", "c"], [1, 2.0, "2"]])
def test_classes_with_one_name(values: list) -> None:
    with pytest.raises(InputError, match="have the same name"):
        AAKNN(labels="class").fit(X, np.array(values, dtype=object)[Y])


def test_masked_classes() -> None:
    with pytest.raises(InputError, match="missing"):
        AAKNN(labels="class").fit(X, np.ma.array(Y, mask=Y == 0))


def test_load_keeps_the_kind_of_labels() -> None:
    model = coppice_ldl.load(AAKNN(labels="age", sigma=1, range=(0, 10)).fit(X, Y).model_)
    assert (model.labels, model.sigma, model.range) == ("age", 1, (0, 10))
    assert model.fit(X, Y).predict_number(X).shape == (60,)


def test_alias() -> None:
    model = SABFGS().fit(X, y=D)
    assert model.score(X, y=D) == model.score(X, D) == model.score(X, D=D)
    assert SABFGS().fit(X, D=D).model_digest_ == model.model_digest_
    with pytest.raises(TypeError, match="D is not supported"):
        model.fit(X, D, D=D)
    with pytest.raises(InputError, match="cluster"):
        model.fit(X, D, name="job")


def test_no_numbers() -> None:
    with pytest.raises(InputError, match="datetime64"):
        SABFGS().fit(np.arange(60).astype("M8[s]").reshape(-1, 1), D)
    with pytest.raises(InputError, match="not numbers"):
        SABFGS().fit(np.zeros((60, 1), dtype=[("a", float)]), D)


class TestFrames:
    """DataFrames."""

    @pytest.fixture(autouse=True)
    def frames(self) -> None:
        pandas = pytest.importorskip("pandas")
        self.X = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
        self.D = pandas.DataFrame(D, columns=["x", "y", "z"])

    def test_label_names(self) -> None:
        model = AAKNN().fit(X, self.D.set_axis([10, 20, 30], axis=1))
        assert model.label_names_.tolist() == ["10", "20", "30"]
        assert model.score(X, self.D.set_axis([10, 20, 30], axis=1)[[30, 10, 20]]) == model.score(X, D)
        with pytest.raises(TypeError, match="some column names"):
            AAKNN().fit(self.X.set_axis([1, "b", "c", "d"], axis=1), D)

    def test_blanks(self) -> None:
        model = AAKNN().fit(self.X.set_axis(["a ", "b", "c\t", "d"], axis=1), self.D)
        assert np.array_equal(model.predict(self.X[["d", "c", "b", "a"]]), model.predict(self.X))

    def test_indexes(self) -> None:
        with pytest.raises(InputError, match="index in another order"):
            AAKNN().fit(self.X, self.D.iloc[::-1])
        part = self.X.iloc[10:40]
        want = AAKNN().fit(X[10:40], D[10:40]).model_digest_
        assert AAKNN().fit(part.to_numpy(), self.D.loc[part.index].to_numpy()).model_digest_ == want

    def test_metrics(self) -> None:
        assert metrics.kl(self.D, self.D[["z", "y", "x"]]) == 0
        with pytest.raises(InputError, match="columns"):
            metrics.kl(self.D, self.D.set_axis(["x", "y", "w"], axis=1))


def test_sparse() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    assert metrics.kl(sparse.csr_matrix(D), D) == 0
    matrix = sparse.csr_matrix(np.where(X > 0, X, 0))
    unused = sparse.csr_matrix((np.append(matrix.data, 7.0), np.append(matrix.indices, 0), matrix.indptr), shape=matrix.shape)
    assert SABFGS().fit(unused, D).model_digest_ == SABFGS().fit(matrix, D).model_digest_
    stale = sparse.csr_matrix(matrix.toarray())
    assert stale.has_canonical_format  # SciPy keeps the answer
    for row in range(stale.shape[0]):
        part = slice(stale.indptr[row], stale.indptr[row + 1])
        stale.indices[part], stale.data[part] = stale.indices[part][::-1].copy(), stale.data[part][::-1].copy()
    before = stale.indices.copy()
    assert SABFGS().fit(stale, D).model_digest_ == SABFGS().fit(matrix, D).model_digest_
    assert np.array_equal(stale.indices, before)
    twice = sparse.csr_matrix((np.ones(3), [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    twice.has_canonical_format = True
    assert _arrays.sparse_arrays(twice)["features_data"].tolist() == [2.0, 1.0]
    assert _arrays.sparse_arrays(sparse.csr_matrix((3, 4)))["features_data"].size == 0


def test_paths(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "{x}.csv").write_text("a,label_b,label_c\n" + "1,0.5,0.5\n2,0.4,0.6\n" * 10)
    assert datasets.load("{x}.csv").X.shape == (20, 1)
    for path in ("/dev/fd/@0", "-", "/dev/stdin"):
        with pytest.raises(InputError, match="twice"):
            datasets.load(path)
    with pytest.raises(InputError, match="comma"):
        datasets.load("{x}.csv", label_columns=["b,c"])
    for option in ("help", "output", "config"):
        with pytest.raises(InputError, match="there is no option"):
            datasets.load("{x}.csv", **{option: "x"})
    with pytest.raises(coppice_ldl.CoppiceError, match="no coordinator answers"):
        coppice_ldl.Client("127.0.0.1:1").delete_model("--help")


def test_no_stderr() -> None:
    code = "import sys; sys.stderr = None\nfrom conftest import make\nfrom coppice_ldl import SABFGS\nX, D = make(40)\nSABFGS().fit(X, D)\nprint('fine')"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=__file__.rpartition("/")[0])
    assert shown.stdout == "fine\n", shown.stderr


def test_next_call_starts_another_process() -> None:
    model = SABFGS().fit(X, D)
    process = _process.current()
    process.ended = "an interrupt has ended the process of coppice"  # as _send does
    process.socket.shutdown(2)
    assert model.predict(X).shape == D.shape
    assert _process.current() is not process


def test_changing_variables(monkeypatch) -> None:
    over = threading.Event()

    def change() -> None:
        import os

        while not over.is_set():
            for i in range(50):
                os.environ[f"CHANGING_{i}"] = "x"
            for i in range(50):
                os.environ.pop(f"CHANGING_{i}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(2000):
            _process._environment()
            _process._variables()
    finally:
        over.set()
        thread.join()


def test_arguments_of_wrong_types_are_refused_here() -> None:
    X, D = make(40)
    before = coppice_ldl.metrics.kl(D, D)
    with pytest.raises(InputError, match="clip=1: want None"):
        coppice_ldl.metrics.all_measures(D, D, clip=1)  # type: ignore[arg-type]
    assert coppice_ldl.metrics.kl(D, D) == before  # the process lives
    for wrong in ({"normalize": "no"}, {"range": 60}, {"range": (0, 1, 2)}, {"range": "0:5"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            AAKNN(**wrong).fit(X, D)
    with pytest.raises(InputError, match="one value for each sample"):
        AAKNN(labels="class").fit(X, D)
    with pytest.raises(InputError, match="want .n_samples, n_labels"):
        AAKNN().fit(X, D[:, :, None])
    with pytest.raises(InputError, match="no samples"):
        coppice_ldl.metrics.kl(D[:0], D[:0])


def test_measures_need_indexes_in_one_order() -> None:
    pandas = pytest.importorskip("pandas")
    _, D = make(40)
    frame = pandas.DataFrame(D)
    with pytest.raises(InputError, match="same index in another order"):
        coppice_ldl.metrics.kl(frame, frame.iloc[::-1])
    assert coppice_ldl.metrics.kl(frame, frame) == 0


def test_estimators_of_numbers_have_no_classes() -> None:
    X, _ = make(40)
    model = coppice_ldl.Ranking(labels="age", sigma=2, range=(0, 60)).fit(X, np.arange(40))
    assert np.array_equal(model.predict_number(X), model.predict(X))
    with pytest.raises(InputError, match="predicts numbers"):
        model.predict_class(X)


def test_not_fitted_is_the_error_of_both_libraries() -> None:
    exceptions = pytest.importorskip("sklearn.exceptions")
    for kind in (coppice_ldl.NotFittedError, exceptions.NotFittedError):
        with pytest.raises(kind):
            AAKNN().predict([[1.0]])


def test_parts_of_an_experiment_are_not_ignored() -> None:
    X, D = make(40)
    data = {"name": "a", "X": X, "D": D}
    spec = {"name": "t", "datasets": [data], "folds": 2, "methods": [AAKNN(k=3)], "measures": ["kl"]}
    for wrong, match in (
        ({"methods": [{"estimator": AAKNN(k=3), "settings": {"k": 4}}]}, "an estimator and settings"),
        ({"methods": [{"estimator": AAKNN(k=3), "algorithm": "sa-bfgs"}]}, "an estimator and algorithm"),
        ({"datasets": [{**data, "file": "z.mat"}]}, "X and file"),
    ):
        with pytest.raises(InputError, match=match):
            coppice_ldl.experiment({**spec, **wrong})
    with pytest.raises(InputError, match="folder"):
        coppice_ldl.experiment(spec, folder="f", server="127.0.0.1:1")


def test_failed_runs_are_told() -> None:
    pytest.importorskip("pandas")
    X, D = make(40)
    spec = {"name": "t", "datasets": [{"name": "a", "X": X, "D": D}], "folds": 2, "methods": [AAKNN(k=39)], "measures": ["kl"]}
    with pytest.warns(UserWarning, match="2 of 2 runs failed; the first: .*39 neighbours"):
        report = coppice_ldl.experiment(spec)
    assert report.runs["kl"].isna().all() and set(report.runs["state"]) == {"failed"}


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["cat", "dog"] * 30),
        np.array(["cat", "dog"] * 30, dtype=object),
        np.array([b"cat", b"dog"] * 30),
        np.array(["cat", "dog"] * 30).reshape(-1, 1),
        ["cat", "dog"] * 30,
        ["1", "cat"] * 30,
    ],
)
def test_classes_need_the_parameter_labels(classes) -> None:
    with pytest.raises(InputError, match="""^D has texts, such as 'cat'; labels="class" takes the class of each sample$"""):
        AAKNN().fit(make(60)[0], classes)
    with pytest.raises(InputError, match="""labels="class" takes the class of each sample, labels="age" takes numbers$"""):
        AAKNN(labels="age", sigma=1, range=(0, 9)).fit(make(60)[0], classes)


def test_other_texts_as_labels() -> None:
    pandas = pytest.importorskip("pandas")
    X, D = make(60)
    for classes in (pandas.Series(["cat", "dog"] * 30), pandas.Series(["cat", "dog"] * 30, dtype="category"), pandas.DataFrame({"kind": ["cat", "dog"] * 30})):
        with pytest.raises(InputError, match='D has texts, such as .cat.; labels="class" takes'):
            AAKNN().fit(X, classes)
    with pytest.raises(InputError, match="could not convert string"):
        AAKNN().fit(X, np.full((60, 3), "cat", dtype=object))
