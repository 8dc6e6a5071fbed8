"""Parameters and options as the command line takes them, and the errors about them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import time
from typing import Any, Callable

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, Client, Ensemble, InputError, LDLForest, MLPRegression, OptionError, Ranking, SABFGS, StructRF, binary, datasets, experiment, load, metrics
from coppice_ldl import _options, _parameters, _progress
from conftest import make

ROOT = pathlib.Path(__file__).parents[2]
X, D = make(40, 4, 3)
DATASET = {"name": "a", "X": X, "D": D}


def spec(**changes: Any) -> dict[str, Any]:
    return {"name": "e", "folds": 2, "methods": [AAKNN()], "datasets": [DATASET], **changes}


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a list of lists": (lambda: LDLForest(hidden=[[8], [8, 4]], features="mlp").fit(X, D), r"hidden=\[\[8\], \[8, 4\]\]: want a list without lists"),
    "a set": (lambda: LDLForest(hidden=frozenset([8]), features="mlp").fit(X, D), r"hidden=frozenset.*: want one value or a list, not a frozenset"),
    "bytes": (lambda: StructRF(trees=b"2").fit(X, D), "trees=b'2': the type bytes is not possible"),
    "a comma": (lambda: LDLForest(freeze=["a,b"], features="mlp").fit(X, D), r"freeze=\['a,b'\]: no item may have a comma"),
    "a text for a bool": (lambda: LDLForest(bias="True").fit(X, D), "bias='True': want True or False, not a text"),
    "a number for a bool": (lambda: LDLForest(bias=2).fit(X, D), 'bias: "2" is not True or False'),
    "normalize": (lambda: AAKNN(normalize=5).fit(X, D), "normalize=5: want True or False"),
    "not a number": (lambda: AAKNN(missing=float("nan")).fit(X, D), "missing=nan: want"),
    "equal bounds": (lambda: AAKNN(range=(5, 5)).fit(X, D), r"range=\(5, 5\): want two different numbers"),
    "a large range": (lambda: AAKNN(range=(0, 10**7)).fit(X, D), r"range \(0, 10000000\): want \(LOW, HIGH\) with the lower number first, at most 65536"),
    "a shape": (lambda: LDLForest(features="conv", shape=(3, 3)).fit(X, D), r"want \(CHANNELS, HEIGHT, WIDTH\), such as \(1, 8, 8\)"),
    "a member": (lambda: Ensemble(members=["aa-knn", StructRF(trees=[1])]).fit(X, D), r"members\[1\]: trees=\[1\]: want one value"),
    "a member with data": (lambda: Ensemble(members=[AAKNN(normalize=True), "rf"]).fit(X, D), r"members\[0\]: .* has normalize, which the ensemble decides"),
    "numbers of an algorithm": (lambda: MLPRegression().fit(X, D), 'MLPRegression predicts numbers; give labels="age"'),
    "a method": (lambda: experiment(spec(methods=[AAKNN(), StructRF(trees=[1])])), r"the spec, methods\[1\]: trees=\[1\]: want one value"),
    "a keyword": (lambda: experiment(spec(methods=[Ranking(lambda_=-1)])), r"the spec, methods\[0\]\.lambda_: "),
    "two methods": (lambda: experiment(spec(methods=["rf", "rf"])), r"the spec, methods\[1\]: two methods have the name \"rf\", the first at methods\[0\]:"),
    "a time": (lambda: experiment(spec(), wait=True), "wait=True: want seconds from 0"),
    "no cluster": (lambda: experiment(spec(), wait=3), "`wait` needs a cluster, but server=None uses none"),
    "a set in a spec": (lambda: experiment(spec(measures={"kl"})), "the type set"),
    "an array of folds": (lambda: Client("127.0.0.1:1").submit(AAKNN(), X, D, split=np.arange(40) % 3), "split: want the path of a file"),
}


@pytest.mark.parametrize(("call", "text"), WRONG.values(), ids=WRONG)
def test_wrong_values(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        call()


def test_equal_values() -> None:
    """Values of other types mean the same."""
    want = AAKNN().fit(X, D).model_digest_
    for other in (AAKNN(normalize=0), AAKNN(normalize=np.int64(0)), AAKNN(normalize=np.False_), AAKNN(missing="refuse")):
        assert other.fit(X, D).model_digest_ == want
        assert Ensemble(members=[other, "sa-bfgs"]).fit(X, D).model_digest_ == Ensemble(members=["aa-knn", "sa-bfgs"]).fit(X, D).model_digest_
    empty = LDLForest(hidden=[], trees=2, steps=2).fit(X, D)
    assert empty.model_digest_ == LDLForest(hidden="none", trees=2, steps=2).fit(X, D).model_digest_
    assert _parameters.flags({"wait": np.int64(4), "header": np.True_}) == ["--wait=4.000000s", "--header=yes"]


def test_settings_of_dicts() -> None:
    """A dict of an experiment takes the values that an estimator takes."""
    images = {"features": "conv", "shape": (1, 2, 2), "channels": [2], "kernel": 1, "pool": 1, "hidden": [4], "trees": 1, "depth": 2, "steps": 2}
    ages = {"name": "a", "X": X, "D": np.arange(40) % 5, "labels": "age", "sigma": 1.0, "range": (0, 4)}
    for methods, datasets in (
        ([{"algorithm": "ldlf", "settings": images}, {"name": "b", "estimator": LDLForest(**images)}], [DATASET]),
        ([{"algorithm": "ranking", "settings": {"lambda_": 0.5}}, {"name": "b", "estimator": Ranking(lambda_=0.5)}], [ages]),
    ):
        runs = experiment(spec(methods=methods, datasets=datasets), verbose=False).runs
        assert len(set(runs[runs["fold"] == 0]["digest"])) == 1 and (runs["state"] == "done").all()


def test_changes_after_fit() -> None:
    """A prediction follows missing as it is now. Other parameters must be as they were in fit."""
    holes = np.where(np.arange(160).reshape(40, 4) == 13, np.nan, X)
    model = SABFGS(missing="mean").fit(holes, D)
    assert np.isfinite(model.predict(holes)).all()
    with pytest.raises(InputError, match="NaN is not a finite number"):
        model.set_params(missing=None).predict(holes)
    model = SABFGS().fit(X, D).set_params(normalize=True)
    loaded = load(model.model_).set_params(normalize=True)
    for call in (lambda: model.score(X, 2 * D), lambda: model.predict(X), lambda: loaded.predict(X)):
        with pytest.raises(InputError, match="normalize was False in fit and is True now; fit again"):
            call()
    assert len(model.fit(X, 2 * D).evaluate(X, 2 * D)["measures"]) == 19
    with pytest.raises(InputError, match="all 2 samples have missing values"), pytest.warns(UserWarning):
        SABFGS(missing="drop").fit(holes, D).score(np.full((2, 4), np.nan), D[:2])
    with pytest.raises(InputError, match="all 40 samples have missing values"):
        SABFGS(missing="drop").fit(np.full_like(X, np.nan), D)
    ages = SABFGS(labels="age", sigma=1, range=(0, 4)).fit(X, np.arange(40) % 5)
    assert ages.set_params(range=[0, 4], sigma=1.0, normalize=None).predict(X).shape == (40, 5)
    with pytest.raises(InputError, match=r"range was \(0, 4\) in fit and is \(0, 5\) now; fit again"):
        ages.set_params(range=(0, 5)).predict(X)
    text = SABFGS(labels="class").fit(X, D.argmax(axis=1))
    assert list(load(text.model_).classes_) == ["0", "1", "2"]
    assert "lambda_" in Ranking(labels="age", sigma=1, range=(0, 4)).fit(X, np.arange(40) % 5).settings_


def test_shape_of_images() -> None:
    """Images in another order than the shape are refused. A warning says that channels may be last."""
    images = np.random.RandomState(3).normal(size=(40, 8, 8, 3))
    small = {"features": "conv", "channels": [2], "kernel": 1, "padding": 0, "pool": 1, "hidden": [4], "trees": 1, "depth": 2, "steps": 1}
    with pytest.warns(UserWarning, match=r"X has the shape \(40, 8, 8, 3\): images of 8 channels with 8 x 3 pixels; .*numpy.moveaxis\(X, -1, 1\)"):
        with pytest.raises(InputError, match=r"shape: the images of the dataset have the shape 8x8x3 .*, not 3x8x8; leave shape out, or transpose"):
            LDLForest(**small, shape=(3, 8, 8)).fit(images, D)
    model = LDLForest(**small).fit(np.moveaxis(images, -1, 1), D)
    assert model.settings_["shape"] == "3x8x8"
    with pytest.raises(InputError, match="images of 8x8x3, but the model reads images of 3x8x8"):
        model.predict(images)


def test_groups_are_arrays(server: str) -> None:
    people = np.arange(40) // 8
    names = np.array([f"person {one}" for one in people])
    client = Client(server)
    for i, groups in enumerate((people, names)):
        job = client.submit(AAKNN(), X, D, name=f"people-{i}", groups=groups, folds="groups").wait(verbose=False)
        assert len(job["result"]["folds"]) == 5
        with pytest.raises(InputError, match="has a model for each of 5 folds; give fold, from 0"):
            job.model()
        assert job.model(fold=4).predict(X).shape == D.shape
        client.import_dataset(X, D, name=f"grouped-{i}", groups=groups, verbose=False)
        assert len(client.submit(AAKNN(), f"grouped-{i}", name=f"by-name-{i}", folds="groups").wait(verbose=False)["result"]["folds"]) == 5
        runs = experiment(spec(folds="groups", datasets=[{**DATASET, "groups": groups}]), verbose=False).runs
        assert list(runs["test_samples"]) == [8] * 5
    with pytest.raises(InputError, match=r"groups has the shape \(3,\), want a value for each of 40 samples"):
        client.submit(AAKNN(), X, D, groups=people[:3], folds="groups")


def test_measures_of_frames() -> None:
    """Columns are matched by name, also if the names are numbers. A frame without names is matched by position."""
    pandas = pytest.importorskip("pandas")
    one = pandas.DataFrame(D, columns=[0, 1, 2])
    assert metrics.kl(one, one[[2, 0, 1]]) == 0
    assert metrics.kl(pandas.DataFrame(D, columns=list("abc")), one) == 0
    with pytest.raises(InputError, match="D_true has the columns"):
        metrics.kl(pandas.DataFrame(D, columns=list("abc")), pandas.DataFrame(D, columns=list("abd")))
    for pair, name in (((D, 2 * D), "D_pred"), ((0.999 * D, D), "D_true")):
        with pytest.raises(InputError, match=rf"{name}: row 0 .*: the probabilities sum to .*, want 1 within 0.0001; normalize=True divides the"):
            metrics.kl(*pair)
        assert metrics.kl(*pair, normalize=True) == pytest.approx(0, abs=1e-15)
    with pytest.raises(InputError, match="one column"):
        metrics.kl([[0.9]], [[0.1]])
    with pytest.raises(InputError, match="D_pred has samples of NaN"):
        metrics.kl(D, np.where(np.arange(40)[:, None] == 3, np.nan, D))


def test_results_that_say_nothing(tmp_path: pathlib.Path) -> None:
    ages = {"name": "a", "X": X, "D": np.arange(40) % 5, "labels": "age", "sigma": 1.0, "range": (0, 4)}
    with pytest.warns(UserWarning, match="the method quadratic has none of the measures .* such as mae"):
        experiment(spec(methods=["quadratic"], datasets=[ages]), verbose=False)
    with pytest.raises(InputError, match="keep_models needs folder"):
        experiment(spec(), keep_models=True)
    (tmp_path / "holes.csv").write_text("a,b,label_p,label_q\n" + "1,NA,0.5,0.5\n2,3,0.4,0.6\n" * 10)
    with pytest.warns(UserWarning, match='give missing="mean" to the estimator, too'):
        assert np.isnan(datasets.load(tmp_path / "holes.csv", missing="mean").X).any()
    with pytest.warns(UserWarning, match="11 different values of feature .* are rounded to 1 number in float32"):
        SABFGS().fit(np.c_[X, 2.0**60 + (np.arange(40) * 7 % 11) * 4096.0], D)
    with pytest.raises(InputError, match="'NA' means a missing value, and cannot be the name of a class"):
        SABFGS(labels="class").fit(X, np.array(["NA", "DE"] * 20))
    for wrong in (coppice_ldl.datasets.generate("smooth", rows=20), "a.csv"):
        with pytest.raises(InputError, match="X is a dataset; give its attributes X and D|X is a text; datasets.load reads files"):
            SABFGS().fit(wrong, D)


def test_a_loaded_model_trains_again() -> None:
    for estimator in (StructRF(features="1", trees=2), StructRF(features=0.5, trees=2), AAKNN(k=3), LDLForest(bias=False, trees=2, steps=2)):
        model = estimator.fit(X, D)
        again = load(model.model_)
        assert again.fit(X, D).model_digest_ == model.model_digest_
    assert load(AAKNN(k=3).fit(X, D).model_).k == 3


def test_a_refused_fit_draws_no_seed() -> None:
    generator = np.random.RandomState(0)
    with pytest.raises(InputError):
        StructRF(random_state=generator).fit(X, D[:5])
    assert generator.randint(1000) == np.random.RandomState(0).randint(1000)


def test_parameters_are_no_options() -> None:
    client = Client("127.0.0.1:1")
    for name in ("trees", "preset", "n_jobs", "random_state"):
        with pytest.raises(OptionError, match=f"submit: {name} is a parameter of StructRF; give it to the estimator"):
            client.submit(StructRF(), X, D, **{name: 1})
    with pytest.raises(OptionError, match="there is no option delimiter; it is for files"):
        client.submit(StructRF(), X, D, delimiter=",")


def test_lines_of_other_files(tmp_path: pathlib.Path) -> None:
    """Lines of a file of folds are no lines of the spec."""
    rows = [f"{row},{row % 2}" for row in range(40)]
    (tmp_path / "folds.csv").write_text("row,fold\n" + "\n".join([*rows, rows[3]]) + "\n")
    with pytest.raises(InputError, match=r"line 42: .* in line 5"):
        experiment(spec(datasets=[{**DATASET, "folds": {"file": str(tmp_path / "folds.csv")}}]))


def test_no_mistake_in_the_spec() -> None:
    with pytest.raises(coppice_ldl.UnavailableError, match="^no coordinator answers"):
        experiment(spec(), server="127.0.0.1:1")


def test_names_of_wide_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((3, 20_000)), columns=[f"gene_{i}" for i in range(20_000)])
    model = SABFGS(iterations=1).fit(frame, D[:3])
    with pytest.raises(InputError, match=r"unseen at fit time:\n- other\nFeature names seen at fit time, yet now missing:\n- gene_7\n"):
        model.predict(frame.rename(columns={"gene_7": "other"}))
    with pytest.raises(InputError, match="several columns have the name 'gene_8'"):
        model.predict(frame.rename(columns={"gene_7": "gene_8"}))


def test_waits_are_told_once(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A place in a queue changes all the time. One line says it, and none follows the end."""
    monkeypatch.setattr(_progress, "QUIET", 0.2)
    with _progress.Progress("rf", "auto", "a") as progress:
        for place in range(5000, 0, -1):
            progress.line(f'{{"state":"queued","waiting":"place {place} in the queue","waiting_for":"queue"}}\n')
            if progress.said and place < 4000:
                break
            time.sleep(0.001)
        monkeypatch.setattr(_progress, "QUIET", 60.0)
        progress.line('{"state":"running"}\n')
        progress.line('{"state":"running","waiting":"no worker is connected","waiting_for":"no_worker"}\n')
        timer = progress.timer
    assert timer is not None and timer.finished.is_set(), "it may still write"
    found = re.fullmatch(r"rf: job a waits: place (\d+) in the queue\n", capfd.readouterr().err)
    assert found is not None and int(found[1]) < 5000, "it is not the newest place"


def flags_of(*command: str) -> set[str]:
    shown = subprocess.run([binary(), *command, "--help-all"], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        shown = subprocess.run([binary(), *command, "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", shown.stdout, re.MULTILINE))


@pytest.mark.skipif(not (ROOT / "go.mod").exists(), reason="the source of the binary is not here")
def test_flags_in_messages() -> None:
    """Each flag in a text of the binary is an argument of the library, or a flag of another command."""
    texts = ""
    for folder in ("dataset", "job", "experiment", "engine", "algorithms", "coordinator", "client", "protocol"):
        for path in (ROOT / folder).rglob("*.go"):
            if not path.name.endswith("_test.go"):
                texts += "\n".join(re.findall(r'"(?:[^"\\]|\\.)*"|`[^`]*`', path.read_text(encoding="utf-8")))
    others = set.union(*(flags_of(*command.split()) for command in ("coordinator", "worker", "restore", "certs client", "cluster members")))
    found = {name for name in re.findall(r"(?<![\w/.-])--([a-z][a-z-]*[a-z])", texts)}
    found -= {"figure-ink", "figure-paper", "figure-series", "report-rule"}  # of style sheets
    known = {name.replace("_", "-") for name in _options.ARGUMENTS}
    assert found - known - others <= {"dataset", "help", "label", "local", "unseen"}, "name them in ARGUMENTS, or name their command here"
