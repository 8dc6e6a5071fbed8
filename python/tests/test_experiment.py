"""A study of a researcher: a table of mixed columns, ten folds of five algorithms, tests and figures, here and on a cluster."""

from __future__ import annotations

import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, LDSVR, CoppiceError, InputError, NotFoundError, Ranking, SABFGS, SAIIS, StructRF, datasets, experiment
from conftest import make

pandas = pytest.importorskip("pandas")

MOODS = ["calm", "happy", "sad"]
METHODS = [
    {"estimator": StructRF(trees=10, min_samples=3), "name": "forest"},
    SABFGS(iterations=100),
    AAKNN(k=8),
    LDSVR(),
    {"estimator": SAIIS(iterations=50), "name": "IIS"},
]


def write_survey(path: pathlib.Path, rows: int = 150) -> None:
    """Write a CSV file as spreadsheets export it: a title, names with spaces, texts, gaps, and decimal commas."""
    draw = np.random.RandomState(7)
    age, height = draw.randint(18, 80, rows), draw.normal(170, 9, rows)
    town = draw.choice(["Ulm", "Bonn", "Köln"], rows)
    smoker = draw.choice(["yes", "no", ""], rows, p=[0.3, 0.6, 0.1])
    logits = np.stack([age / 25.0, height / 50 + (town == "Ulm"), 2.0 * (smoker == "yes")], axis=1) + draw.normal(0, 0.1, (rows, 3))
    D = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    lines = ["Survey of moods;;;;;;;;", "", "id;age (years);height, cm;town;smoker?;weight;" + ";".join(f"mood: {m}" for m in MOODS)]
    for i in range(rows):
        weight = "" if i % 17 == 0 else "n/a" if i % 31 == 5 else f"{height[i] - 100 + draw.normal():.1f}".replace(".", ",")
        numbers = [f"{height[i]:.1f}".replace(".", ","), town[i], smoker[i], weight, *(f"{100 * d:.1f}".replace(".", ",") for d in D[i])]
        lines.append(f"p{i:03d};{age[i]};" + ";".join(numbers))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")


def read_survey(path: pathlib.Path) -> tuple[Any, Any]:
    """Return features and labels of the survey, as a researcher prepares them."""
    table = pandas.read_csv(path, sep=";", skiprows=2, decimal=",", index_col="id", encoding="utf-8-sig")
    D = table[[f"mood: {m}" for m in MOODS]].set_axis(MOODS, axis=1)
    return table.drop(columns=[f"mood: {m}" for m in MOODS]), D


def survey_spec(X: Any, D: Any, **keys: Any) -> dict[str, Any]:
    dataset = {"name": "survey", "X": X, "D": D, "normalize": True, "missing": "mean"}
    return {"name": "afternoon", "seed": 3, "folds": 10, "datasets": [dataset], "methods": METHODS, "measures": ["kl", "chebyshev", "cosine"], **keys}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    path = tmp_path_factory.mktemp("survey") / "Survey (final 2).csv"
    write_survey(path)
    X, D = read_survey(path)
    with pytest.raises(InputError, match="the column 'town' has the type (object|str), not numbers; encode it, for example with pandas.get_dummies"):
        SABFGS().fit(X, D)
    X = pandas.get_dummies(X, columns=["town", "smoker?"])
    with pytest.raises(InputError, match=r'row 0, feature 2 "weight" .*NaN is not a finite number'):
        SABFGS().fit(X, D)
    with pytest.raises(InputError, match="the labels sum to .*normalize=True divides"):
        SABFGS(missing="mean").fit(X, D)
    model = SABFGS(missing="mean", normalize=True).fit(X, D)
    assert list(model.label_names_) == MOODS and list(model.feature_names_in_) == list(X.columns)
    assert set(X.columns) >= {"age (years)", "height, cm", "town_Köln", "smoker?_no"}
    return X, D


def test_afternoon(survey: tuple[Any, Any], server: str, tmp_path: pathlib.Path) -> None:
    X, D = survey
    here = experiment(survey_spec(X, D), folder=tmp_path / "results", record="curve", verbose=False)
    runs = here.runs
    assert len(runs) == 50 and set(runs["state"]) == {"done"}
    assert list(runs["method"].unique()) == ["forest", "sa-bfgs iterations=100", "aa-knn k=8", "ldsvr", "IIS"]
    assert (runs["kl"] < runs["kl_mean_baseline"]).mean() > 0.9
    table = here.table()
    assert "corrected t" in table and "Wilcoxon" in table and "Holm" in table and "forest" in table
    assert str(here) == table
    check_results(here, runs)
    figures = here.figures(tmp_path / "figures")
    assert figures and {pathlib.Path(one).suffix for one in figures} == {".svg", ".png", ".pdf"}
    assert all(pathlib.Path(one).stat().st_size > 500 for one in figures)
    for kind, text in (("md", "# afternoon"), ("csv", "dataset,measure,method"), ("latex", r"\begin{"), ("html", "<table")):
        assert text in here.table(kind)
    there = experiment(survey_spec(X, D), server=server, record="curve", verbose=False)
    assert there.table(no_times=True) == here.table(no_times=True)
    assert there.table("md", no_times=True) == here.table("md", no_times=True)
    assert there.json(no_times=True) == here.json(no_times=True)
    assert list(there.runs["digest"]) == list(runs["digest"])


def check_results(report: Any, runs: Any) -> None:
    """Compare the means of the report with those of the runs."""
    for result in report.json()["results"]:
        for line in result["lines"]:
            mine = runs[runs["method"] == line["method"]][result["measure"]]
            assert line["mean"] == pytest.approx(mine.mean(), rel=1e-9) and line["std"] == pytest.approx(mine.std(ddof=0), rel=1e-6)


def test_runs_equal_fits(survey: tuple[Any, Any]) -> None:
    """The folds are those of scikit-learn's KFold, and each run is a fit on its training samples."""
    selection = pytest.importorskip("sklearn.model_selection")
    X, D = survey[0].fillna(0), survey[1].div(survey[1].sum(axis=1), axis=0)
    spec = {"name": "folds", "folds": {"sklearn": 5, "seed": 0}, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [AAKNN(k=5)], "measures": ["kl"]}
    runs = experiment(spec, verbose=False).runs
    folds = selection.KFold(5, shuffle=True, random_state=0).split(X)
    for (_, one), (train, test) in zip(runs.iterrows(), folds):
        model = AAKNN(k=5).fit(X.iloc[train], D.iloc[train])
        assert one["test_samples"] == len(test)
        assert one["kl"] == pytest.approx(-model.score(X.iloc[test], D.iloc[test]), rel=1e-6)


def test_models_of_runs(server: str, tmp_path: pathlib.Path) -> None:
    """The digest of a run names its model, here and on a cluster."""
    X, D = make(60, 4)
    spec = {"name": "kept", "folds": 2, "datasets": [{"name": "all", "X": X, "D": D}], "methods": [AAKNN(k=3), SABFGS()], "measures": ["kl"]}
    here = experiment(spec, folder=tmp_path / "kept", keep_models=True, verbose=False)
    there = experiment(spec, server=server, keep_models=True, verbose=False)
    for report in (here, there):
        for run in report.runs.itertuples():
            model = report.model(run.digest)
            assert model.model_digest_ == run.digest and model._algorithm == run.method.split()[0]
            assert model.predict(X).shape == D.shape
    assert set(here.runs["digest"]) == set(there.runs["digest"])
    other = experiment(dict(spec, name="other"), folder=tmp_path / "other", verbose=False)
    for report, digest in ((here, "0" * 64), (there, "0" * 64), (there, ""), (other, other.runs["digest"][0])):
        with pytest.raises(NotFoundError, match="the experiment has not kept a model with the digest .*; keep_models=True keeps the models of runs that it trains, so give it at the first run"):
            report.model(digest)


def test_folder_is_resumed(tmp_path: pathlib.Path) -> None:
    X, D = make(60)
    spec = {"name": "resumed", "folds": 3, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [SABFGS()], "measures": ["kl"]}
    first = experiment(spec, folder=tmp_path / "f", verbose=False).runs
    again = experiment(spec, folder=str(tmp_path / "f"), verbose=False).runs
    pandas.testing.assert_frame_equal(again, first)
    spec["methods"] = [SABFGS(), AAKNN(k=3)]
    more = experiment(spec, folder=tmp_path / "f", verbose=False).runs
    assert len(more) == 6
    kept = more[more["method"] == "sa-bfgs"].reset_index(drop=True)
    assert list(kept["seconds"]) == list(first["seconds"]) and list(kept["digest"]) == list(first["digest"])
    assert not list(tmp_path.rglob("*.npz")) and not list(tmp_path.rglob("spec.yaml"))


def test_temporary_files_are_deleted(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    X, D = make(60)
    spec = {"name": "temporary", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [SABFGS()]}
    report = experiment(spec, verbose=False)
    assert len(list(tmp_path.iterdir())) == 1 and report.table()
    del report
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError):
        experiment({**spec, "folds": 1}, verbose=False)
    assert list(tmp_path.iterdir()) == []


def test_specs_with_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a dict are relative to the working directory, and a spec in a file has its own folder."""
    X, D = make(60)
    table = pandas.DataFrame(np.hstack([X, D]), columns=[*"abcde", *(f"label_{i}" for i in range(4))])
    table.to_csv(tmp_path / "sixty.csv", index=False)
    pandas.DataFrame({"row": range(60), "fold": np.arange(60) % 4}).to_csv(tmp_path / "folds.csv", index=False)
    monkeypatch.chdir(tmp_path)
    spec = {"name": "files", "folds": 2, "methods": [SABFGS()], "measures": ["kl"]}
    arrays = {"name": "arrays", "X": X, "D": D}
    runs = experiment({**spec, "datasets": ["sixty.csv", arrays, {"file": pathlib.Path("sixty.csv"), "name": "again"}]}, verbose=False).runs
    assert list(runs["dataset"]) == ["sixty"] * 2 + ["arrays"] * 2 + ["again"] * 2
    assert list(runs["digest"][:2]) == list(runs["digest"][4:])
    split = experiment({**spec, "datasets": [{**arrays, "folds": {"file": "folds.csv"}}]}, verbose=False).runs
    assert len(split) == 4 and set(split["test_samples"]) == {15}
    (tmp_path / "study.yaml").write_text("name: study\nfolds: 2\ndatasets: [sixty.csv]\nmethods: [sa-bfgs]\nmeasures: [kl]\n")
    monkeypatch.chdir("/")
    study = experiment(tmp_path / "study.yaml", verbose=False).runs
    assert list(study["digest"]) == list(runs["digest"][:2])


def test_kinds_of_values(tmp_path: pathlib.Path) -> None:
    generated = datasets.generate("ages", rows=80, seed=2)
    low, count = 0, generated.D.shape[1]
    spec = {
        "name": "kinds",
        "seed": np.int64(2),
        "folds": {"k": np.int32(2), "only": (0,)},
        "datasets": ({"name": "ages", "X": generated.X, "D": generated.D, "range": f"{low}:{low + count - 1}"},),
        "methods": [{"estimator": Ranking(lambda_=np.float64(0.25), loops=2), "name": "λ={lambda}"}, {"algorithm": "aa-knn", "grid": {"k": np.array([2, 3])}}],
    }
    runs = experiment(spec, verbose=False).runs
    assert len(runs) == 3 and runs["method"][0] == "λ=0.25" and set(runs["state"]) == {"done"}


MISTAKES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an unknown algorithm": ({"methods": ["strutrf"]}, [r'methods\[0\]: algorithm: "strutrf" is unknown .did you mean "structrf"']),
    "several": (
        {"methods": ["strutrf", {"algorithm": "sa-bfgs", "settings": {"iteration": 3}}], "folds": 1, "sed": 3},
        ['folds: "1"', r'methods\[0\]: .*"strutrf" is unknown', r'methods\[1\]\.settings\.iteration: .*did you mean "iterations"', 'sed: .*did you mean "seed"'],
    ),
    "values of estimators": ({"methods": [SABFGS(iterations=-3), StructRF(trees="many")]}, [r'methods\[0\]\.iterations: "-3"', r'methods\[1\]\.trees: "many"']),
    "no methods": ({"methods": []}, ["methods: the list is empty"]),
    "a missing file": ({"datasets": ["none.csv"]}, [r"datasets\[0\]: dataset none: .*none.csv: no such file; name another folder with `data`, "]),
    "a key in a list of lists": ({"measures": ["kl", "klx"]}, [r'measures\[1\]: unknown measure "klx"']),
    "a key of a dict": ({"folds": {"k": 3, "kk": 2}}, ['folds.kk: folds: unknown key "kk"']),
    "a name": ({"name": "a b"}, ["name: a name can have only letters"]),
}


@pytest.mark.parametrize("case", list(MISTAKES))
def test_mistakes(case: str) -> None:
    X, D = make(60)
    keys, want = MISTAKES[case]
    with pytest.raises(InputError) as caught:
        experiment({"name": "wrong", "folds": 3, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [SABFGS()], **keys}, verbose=False)
    mistakes = caught.value.mistakes
    assert len(mistakes) == len(want), mistakes
    for pattern, text in zip(want, mistakes):
        assert re.match(f"the spec, {pattern}", text), text
        assert text in str(caught.value)
    assert isinstance(caught.value, ValueError) and caught.value.kind == "usage"


def test_mistakes_in_arrays() -> None:
    X, D = make(60)

    def call(*entries: dict[str, Any], methods: Any = (SABFGS(),)) -> None:
        experiment({"name": "wrong", "folds": 3, "datasets": entries, "methods": methods}, verbose=False)

    with pytest.raises(InputError) as caught:
        call({"name": "d", "X": X, "D": D * 2}, {"name": "e", "X": X, "D": -D})
    assert len(caught.value.mistakes) == 2
    assert re.search("dataset d: the arrays of d: row 0 .*the labels sum to 2", caught.value.mistakes[0])
    assert re.search("dataset e: the arrays of e: row 0, label 0 .*is negative", caught.value.mistakes[1])
    for entry, text in (
        ({"X": X, "D": D}, "a dataset with X and D needs a name"),
        ({"name": "d", "X": X}, "the dataset d has X but no D"),
        ({"name": "d", "X": X, "D": D[:3]}, "X has 60 samples, D has 3"),
        ({"name": "d", "X": X, "D": D, "missing": object()}, "the spec has a value of the type object"),
    ):
        with pytest.raises(InputError, match=text):
            call(entry)
    for method, text in (
        (SABFGS(random_state=5), "has no random_state; give the key seed of the spec"),
        (SABFGS(random_state=0), "has no random_state; give the key seed of the spec"),
        (SABFGS(missing=0), "has no missing; give the key missing of a dataset in the spec"),
        (SABFGS(missing="mean"), "has no missing; give the key missing of a dataset in the spec"),
    ):
        with pytest.raises(InputError, match=text):
            call({"name": "d", "X": X, "D": D}, methods=[method])


def test_a_method_that_fails(survey: tuple[Any, Any]) -> None:
    X, D = make(60)
    spec = {"name": "fails", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [SABFGS(), {"estimator": AAKNN(k=500), "name": "far"}]}
    report = experiment(spec, verbose=False)
    runs = report.runs
    assert list(runs[runs["method"] == "far"]["state"]) == ["failed"] * 2
    assert "500 neighbours" in report.table()


def test_html_of_a_report() -> None:
    X, D = make(60)
    report = experiment({"name": "h", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [SABFGS()]}, verbose=False)
    html = report._repr_html_()
    assert html.startswith("<div>") and "<table" in html and "sa-bfgs" in html
    with pytest.raises(InputError, match='`kind` must be one of .* but got "docx"'):
        report.table("docx")
    with pytest.raises(CoppiceError, match="none.yaml: no such file"):
        experiment("none.yaml", verbose=False)
    assert coppice_ldl.Report is type(report)


STOPPED = """
import os, signal, sys, threading, time
import numpy as np
import coppice_ldl
X = np.random.RandomState(0).rand(200, 4)
spec = {"name": "e", "folds": 2, "datasets": [{"name": "d", "X": X, "D": X / X.sum(axis=1, keepdims=True)}],
        "methods": [coppice_ldl.LDLForest(steps=1000000, patience=1000000)]}
threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    coppice_ldl.experiment(spec, n_jobs=1)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_an_interrupt_before_a_run_has_ended_keeps_nothing(tmp_path) -> None:
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, env=variables, timeout=120, check=False)
    assert found.returncode == 7 and "results of runs" not in found.stderr, found.stderr
    assert os.listdir(tmp_path) == []


def test_a_pickled_report_has_its_results(tmp_path) -> None:
    """A report of a temporary folder is pickled with its results. A report of a folder of the user names the folder."""
    X, D = make(40)
    spec = {"name": "e", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": ["aa-knn"]}
    report = coppice_ldl.experiment(spec, verbose=False)
    values, folder = report.runs["kl"].tolist(), report._name
    pickled = pickle.dumps(report)
    del report
    assert not os.path.exists(folder)
    again = pickle.loads(pickled)
    assert again.runs["kl"].tolist() == values and again._name != folder
    folder = again._name
    del again
    assert not os.path.exists(folder)
    report = coppice_ldl.experiment(spec, folder=tmp_path / "f", verbose=False)
    pickled = pickle.dumps(report)
    assert pickle.loads(pickled).runs["kl"].tolist() == values
    shutil.rmtree(tmp_path / "f")
    with pytest.raises(coppice_ldl.NotFoundError, match="f: no such file or folder"):
        _ = pickle.loads(pickled).runs


class Nearest:
    """An estimator that knows nothing of scikit-learn: the distribution of the nearest training sample."""

    def fit(self, X: Any, D: Any) -> None:
        self.X, self.D = np.asarray(X), D

    def predict(self, X: Any) -> Any:
        return self.D[((np.asarray(X)[:, None] - self.X[None]) ** 2).sum(axis=2).argmin(axis=1)]


def test_estimators_of_other_libraries(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their measures equal those of the same algorithm, for arrays, frames, files, repeats and chosen folds."""
    X, D = make(60)
    monkeypatch.chdir(tmp_path)
    table = pandas.DataFrame(np.hstack([X, D]), columns=[*"abcde", *(f"label_{i}" for i in range(4))])
    table.to_csv("sixty.csv", index=False)
    frames = {"name": "frames", "X": pandas.DataFrame(X, index=range(100, 160)), "D": pandas.DataFrame(D, columns=list("wxyz"), index=range(100, 160))}
    spec = {
        "name": "own",
        "datasets": [{"name": "arrays", "X": X, "D": D}, frames, "sixty.csv", {"file": "sixty.csv", "name": "some", "folds": {"k": 4, "only": [1, 3]}}],
        "folds": {"k": 3, "repeats": 2},
        "methods": [{"estimator": AAKNN(k=1, scaling="none"), "name": "ours"}, Nearest(), {"estimator": Nearest(), "name": "theirs"}],
        "measures": ["kl", "clark"],
    }
    report = experiment(spec, verbose=False)
    runs = report.runs
    assert len(runs) == 3 * (3 * 6 + 2) and set(runs["state"]) == {"done"}
    own, others = runs[runs["method"] == "ours"], runs[runs["method"] == "theirs"]
    np.testing.assert_allclose(others[["kl", "clark"]], own[["kl", "clark"]], rtol=1e-5)
    assert list(others["digest"]) == list(runs[runs["method"] == "Nearest"]["digest"])
    assert "theirs" in report.table("latex", bare=True, against="theirs")


def test_own_estimators_and_validation_files(tmp_path: pathlib.Path) -> None:
    """An estimator of another library is fitted to the training samples of a file with a file of validation samples."""
    X, D = make(60)
    table = pandas.DataFrame(np.hstack([X, D]), columns=[*"abcde", *(f"label_{i}" for i in range(4))])
    table[:40].to_csv(tmp_path / "train.csv", index=False)
    table[40:].to_csv(tmp_path / "own.csv", index=False)
    spec = {
        "name": "own",
        "datasets": [{"file": tmp_path / "train.csv", "validation": tmp_path / "own.csv", "weighted_measures": False}],
        "folds": 2,
        "methods": [{"estimator": AAKNN(k=1, scaling="none"), "name": "ours"}, {"estimator": Nearest(), "name": "theirs"}],
        "measures": ["kl"],
    }
    runs = experiment(spec, verbose=False).runs
    own, others = runs[runs["method"] == "ours"], runs[runs["method"] == "theirs"]
    assert len(others) == 2 and set(runs["state"]) == {"done"}
    np.testing.assert_allclose(others["kl"], own["kl"], rtol=1e-5)


def test_samples_that_are_left_out(tmp_path: pathlib.Path) -> None:
    """An estimator is fitted to the rows that a fold trains on, whether a file or arrays have samples that are left out."""
    X, D = make(60)
    X[[3, 17]] = np.nan
    D *= 2
    table = pandas.DataFrame(np.hstack([X, D]), columns=[*"abcde", *(f"label_{i}" for i in range(4))])
    table.to_csv(tmp_path / "gaps.csv", index=False)
    reading = {"missing": "drop", "normalize": True}
    spec = {
        "name": "own",
        "datasets": [{"file": tmp_path / "gaps.csv", **reading}, {"name": "arrays", "X": X, "D": D, **reading}],
        "folds": 3,
        "methods": [{"estimator": AAKNN(k=1, scaling="none"), "name": "ours"}, {"estimator": Nearest(), "name": "theirs"}],
        "measures": ["kl", "clark"],
    }
    runs = experiment(spec, verbose=False).runs
    assert len(runs) == 12 and set(runs["state"]) == {"done"}
    ours, theirs = runs[runs["method"] == "ours"], runs[runs["method"] == "theirs"]
    np.testing.assert_allclose(theirs[["kl", "clark"]], ours[["kl", "clark"]], rtol=1e-5)


class Wrong(Nearest):
    def __init__(self, change: Any) -> None:
        self.change = change

    def predict(self, X: Any) -> Any:
        return self.change(super().predict(X))


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda P: 2 * P, "are not distributions; the first has the degrees"),
        (lambda P: P * np.nan, "30 samples with NaN"),
        (lambda P: P[:, :2], "want (30, 4)"),
        (lambda P: "none", "predict returned"),
    ],
)
def test_wrong_predictions(change: Any, said: str) -> None:
    X, D = make(60)
    spec = {"name": "own", "datasets": [{"name": "arrays", "X": X, "D": D}], "folds": 2, "methods": [Wrong(change)]}
    with pytest.raises(InputError, match=re.escape(said)) as error:
        experiment(spec, verbose=False)
    assert "Wrong, arrays, fold 0" in str(error.value)


class Fails(Nearest):
    def fit(self, X: Any, D: Any) -> None:
        raise ValueError("singular matrix")


def test_wrong_own_methods(tmp_path: pathlib.Path) -> None:
    X, D = make(60)
    arrays = {"name": "arrays", "X": X, "D": D}
    with pytest.raises(InputError, match="Fails, arrays, fold 0: ValueError: singular matrix"):
        experiment({"name": "own", "datasets": [arrays], "methods": [Fails()]}, verbose=False)
    for key, value in (("mask", 0.5), ("enhance", {"method": "lp", "binarise": 0.5})):
        with pytest.raises(InputError, match=f"has the key {key}, but an estimator of another library"):
            experiment({"name": "own", "datasets": [{**arrays, key: value}], "methods": [Nearest()]}, verbose=False)
    with pytest.raises(InputError, match="needs label distributions"):
        experiment({"name": "own", "datasets": [{**arrays, "D": np.arange(60) % 3, "labels": "class"}], "methods": [Nearest()]}, verbose=False)
    with pytest.raises(InputError, match="can only have a name"):
        experiment({"name": "own", "datasets": [arrays], "methods": [{"estimator": Nearest(), "preset": "auto"}]}, verbose=False)
    with pytest.raises(TypeError, match="is not an estimator"):
        experiment({"name": "own", "datasets": [arrays], "methods": [Nearest]}, verbose=False)
