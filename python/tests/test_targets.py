"""Targets of all kinds: the model returns them as they were given, and measures are of what was given."""

from __future__ import annotations

import pathlib
import warnings

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, SABFGS, Client, InputError, MLPRegression, Quadratic, Ranking, StructRF, datasets, experiment, metrics
from conftest import make

X, D = make(120, 4)
YEARS = 20.5 + 3 * X[:, 0] + X[:, 1]
AGES = {"labels": "age", "sigma": 2, "range": (0, 40)}


@pytest.mark.parametrize("estimator", [Quadratic, Ranking, MLPRegression, SABFGS])
def test_ages_with_fractions(estimator) -> None:
    """Errors are measured from the exact ages, also if the model was trained on whole ages."""
    for train in (YEARS, YEARS.reshape(-1, 1), np.round(YEARS), np.round(YEARS).astype(int)):
        model = estimator(**AGES).fit(X, train)
        predicted = model.predict(X) if model._predicts == "number" else model.predict_number(X)
        for fitted in (model, coppice_ldl.load(model.model_)):
            for test in (YEARS, np.round(YEARS)):
                found = fitted.evaluate(X, test)["added"]["model"]
                mean = found["number"]["number"] if "number" in found else found["scale"]["expected"]
                assert mean["mae"]["mean"] == pytest.approx(np.abs(predicted - test).mean(), abs=1e-6)


def test_exact_ages_elsewhere(server: str, tmp_path: pathlib.Path) -> None:
    """An experiment and a cluster measure from the exact ages, too."""
    spec = {"name": "ages", "folds": 3, "datasets": [{"name": "a", "X": X, "D": YEARS, **AGES}], "methods": ["quadratic"], "measures": ["mae"]}
    assert (experiment(spec, verbose=False).runs["mae"] < 0.01).all()
    whole = dict(spec["datasets"][0], D=np.floor(YEARS), values=YEARS)
    assert (experiment(dict(spec, datasets=[whole]), verbose=False).runs["mae"] < 0.01).all()
    scale = {"name": "a", "X": X, "D": D, "range": (0, 3), "values": D @ np.arange(4)}
    report = experiment(dict(spec, datasets=[scale], methods=["sa-bfgs"], measures=["kl"]), folder=tmp_path / "kept", keep_models=True, verbose=False)
    kept = report.model(report.runs["digest"][0])
    assert kept.evaluate(X, D, values=scale["values"])["added"]["model"]["scale"]["expected"]["mae"]["mean"] < 0.5
    assert kept.score(X, D, values=scale["values"]) == pytest.approx(-metrics.kl(D, kept.predict(X)), rel=1e-3)
    with pytest.raises(InputError, match=r"values has the shape \(3,\), want a value for each of 120 samples"):
        experiment(dict(spec, datasets=[dict(whole, values=YEARS[:3])]), verbose=False)
    assert Quadratic(**AGES).fit(X, YEARS, server=server).score(X, YEARS) > -0.01
    client = Client(server)
    client.import_dataset(X, YEARS, name="exact", **AGES)
    for job in (client.submit(Quadratic(), "exact", test_fraction=0.2), client.submit(Quadratic(**AGES), X, YEARS, test_fraction=0.2)):
        assert job.wait(verbose=False)["result"]["added"]["model"]["number"]["number"]["mae"]["mean"] < 0.01
    with pytest.raises(InputError, match="X is an array, so give D"):
        client.import_dataset(X, name="none")


@pytest.mark.parametrize("names", [("+1", "-1"), ("1.0", "2.0"), ("1e3", "2"), ("007", "8"), (" a", "b"), (-0.0, 1.0), (2**60, 2**60 + 1), (2**64 - 1, 2**64 - 2), (True, False)])
def test_classes_are_as_they_were_given(names: tuple) -> None:
    y = np.array([names[one] for one in (X[:, 0] > 0).astype(int)])
    model = StructRF(labels="class", trees=20).fit(X, y)
    assert (model.predict_class(X) == y).mean() > 0.9 and sorted(model.classes_) == sorted(set(y.tolist()))


def test_classes_that_are_refused() -> None:
    with pytest.raises(InputError, match="D: '1' and '1.0' are the same number"):
        SABFGS(labels="class").fit(X, np.where(X[:, 0] > 0, "1", "1.0"))
    with pytest.raises(InputError, match=r"D: the type datetime64\[ns\] is not supported; give texts"):
        SABFGS(labels="class").fit(X, np.array(["NaT", *["2020-01-01"] * 119], "datetime64[ns]"))
    with pytest.warns(UserWarning, match="D has only the class '7', so every prediction is this class"):
        SABFGS(labels="class").fit(X, np.full(120, 7))


def test_classes_of_other_types() -> None:
    pandas = pytest.importorskip("pandas")
    large = pandas.Series(10**17 + np.arange(120) % 4, dtype="Int64")
    large[0] = pandas.NA
    with pytest.warns(UserWarning, match="1 of 120 samples have missing values"):
        model = AAKNN(k=1, labels="class", missing="drop").fit(X, large)
    assert list(model.classes_) == [10**17, 10**17 + 1, 10**17 + 2, 10**17 + 3]
    for value, text in ((b"\xff", "row 3: .* is not UTF-8"), ("a\0", "row 3: .* has a NUL")):
        with pytest.raises(InputError, match="D: " + text):
            SABFGS(labels="class").fit(X, np.array(["a", "b", "a", value] * 30, dtype=object))


def test_labels_that_are_sorted() -> None:
    """Labels with numbers as names have the order of the numbers, with a warning."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(D, columns=[3, 1, 2, 4])
    with pytest.warns(UserWarning, match="the labels are sorted as numbers: predict and label_names_ have the order 1, 2, 3, 4, not"):
        model = SABFGS(range=(1, 4)).fit(X, frame)
    assert np.allclose(model.predict(X), SABFGS(range=(1, 4)).fit(X, D[:, [1, 2, 0, 3]]).predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SABFGS().fit(X, frame)
        SABFGS().fit(X, pandas.DataFrame(D, columns=[" a", "b ", "c", "d"]))


def test_groups_have_the_index_of_the_samples(server: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame, groups = pandas.DataFrame(X), pandas.Series(np.repeat(["a", "b", "c"], 40))
    days = np.datetime64("2020-01-01") + np.repeat([0, 1, 2], 40)
    assert Client(server).submit(AAKNN(), X, D, groups=days, folds="groups").wait(verbose=False).state == "done"
    with pytest.raises(InputError, match=r"groups: the type datetime64\[ns\] is not supported; give texts, such as groups.astype"):
        Client(server).submit(AAKNN(), X, D, groups=days.astype("datetime64[ns]"), folds="groups")
    with pytest.raises(InputError, match=r"X and groups have the same index in another order.*give groups.loc\[X.index\]"):
        Client(server).submit(AAKNN(), frame, D, groups=groups.sample(frac=1, random_state=1), folds="groups")


def test_columns_of_a_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y,age,exact,person,least,most\n1,2,3,3.25,p,2,4\n2,5,4,4.75,q,3,6\n7,1,5,5.5,p,5,6\n")
    data = datasets.load(path, labels="age", sigma=1, range=(0, 9), values="exact", groups="person", intervals=["least", "most"])
    assert data.X.shape == (3, 2) and list(data.values) == [3.25, 4.75, 5.5] and list(data.groups) == ["p", "q", "p"]
    assert data.intervals.tolist() == [[2, 4], [3, 6], [5, 6]]


def test_experiments_that_are_repeated(tmp_path: pathlib.Path) -> None:
    """Other data under the same names repeat the runs with a warning. Folds of one's own are groups."""
    spec = {"name": "r", "folds": 2, "datasets": [{"name": "a", "X": X, "D": D}], "methods": [AAKNN(k=3)], "measures": ["kl"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        experiment(spec, folder=tmp_path / "r", verbose=False)
    with pytest.warns(UserWarning, match="2 runs are repeated, because their data, settings, folds or seed have changed"):
        experiment(dict(spec, datasets=[{"name": "a", "X": X, "D": D[::-1]}]), folder=tmp_path / "r", verbose=False)
    grid = {"algorithm": "ldlf", "grid": [{"hidden": [[4, 4], [8]]}], "settings": {"features": "mlp", "steps": 2, "trees": 1, "depth": 2}}
    ages = {"name": "a", "X": np.where(X > 2, np.nan, X), "D": np.round(YEARS), "missing": "drop", **AGES}
    with pytest.warns(UserWarning, match="^the arrays of a: .* have missing values"):
        runs = experiment(dict(spec, datasets=[ages], methods=[grid], measures=["mae"]), verbose=False).runs
    assert len(set(runs["method"])) == 2
    for wrong in (dict(spec, folds=[0, 1] * 60), dict(spec, datasets=[{"name": "a", "X": X, "D": D, "folds": np.arange(120) % 2}])):
        with pytest.raises(InputError, match='folds: for folds of your own, give datasets the key groups, .* and folds="groups"'):
            experiment(wrong, verbose=False)


def test_probabilities_just_below_zero() -> None:
    """Rounding errors of a softmax or a mean are no mistakes, as in training."""
    P = np.full_like(D, 1 / D.shape[1])
    off = D.copy()
    off[0], D0 = [-1e-17, 0.5, 0.25, 0.25], [0, 0.5, 0.25, 0.25]
    exact = off.copy()
    exact[0] = D0
    assert metrics.kl(off, P) == metrics.kl(exact, P)
    with pytest.raises(InputError, match="row 0 .*label 0: -0.01 is not a probability"):
        off[0, 0] = -0.01
        metrics.kl(off, P)
