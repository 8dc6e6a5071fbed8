"""Specs of experiments with parts of the wrong type, and experiments that are repeated with another spec."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, SABFGS, CoppiceError, InputError, NotFoundError, Report, StructRF, experiment
from conftest import make

X, D = make(60)
SET = {"name": "d", "X": X, "D": D}


def spec(**keys: Any) -> dict[str, Any]:
    return {"name": "repeated", "folds": 2, "datasets": [SET], "methods": [SABFGS()], "measures": ["kl"], **keys}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([], r"experiment: \[\] \(list\) is not a spec; give a dict"),
        (None, "is not a spec"),
        (spec(methods=AAKNN()), r"the spec, methods: AAKNN\(\) \(AAKNN\) is not a list; write methods=\[\.\.\.\], also for one"),
        (spec(methods="aa-knn"), "the spec, methods: .* is not a list"),
        (spec(methods=[SABFGS(), AAKNN]), r"the spec, methods\[1\]: AAKNN is a class; give an estimator: AAKNN\(\)"),
        (spec(methods=[3]), r"the spec, methods\[0\]: 3 \(int\) is not an estimator"),
        (spec(methods=[{"estimator": AAKNN}]), "AAKNN is a class"),
        (spec(methods=[{"estimator": "aa-knn"}]), r"methods\[0\]\.estimator: .* a name is the value of the key algorithm"),
        (spec(datasets=SET), "the spec, datasets: .* is not a list"),
        (spec(datasets=[X]), r"the spec, datasets\[0\]: .* \(ndarray\) is not a dict with name, X and D"),
    ],
)
def test_wrong_types(given: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        experiment(given, verbose=False)


@pytest.mark.parametrize("key", ["methods", "datasets"])
def test_missing_keys(key: str) -> None:
    given = spec()
    del given[key]
    with pytest.raises(InputError, match=f"the spec has no {key}; give the key {key} with a list"):
        experiment(given, verbose=False)


def test_unknown_options(tmp_path: pathlib.Path) -> None:
    for options, text in (
        ({"retry_fail": True}, "experiment: there is no option retry_fail; did you mean retry_failed?"),
        ({"zzz": None}, "experiment: there is no option zzz; the options are data, keep_models, "),
        ({"yes": True}, "there is no option yes; give replace"),
        ({"figures": "f"}, "use the method figures of the report"),
    ):
        with pytest.raises(TypeError, match=re.escape(text)):
            experiment(spec(), verbose=False, **options)
    report = experiment(spec(), folder=tmp_path / "f", verbose=False)
    with pytest.raises(TypeError, match="table: there is no option no_time; did you mean no_times?"):
        report.table(no_time=True)


def test_errors_of_every_class_have_no_temporary_path(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CoppiceError) as caught:
        experiment(spec(), folder=tmp_path / "file", verbose=False)
    assert type(caught.value) is not InputError and "file" in str(caught.value)
    with pytest.raises(InputError, match="the arrays of d: row 0 .*the labels sum to 2"):
        experiment(spec(datasets=[{**SET, "D": 2 * D}]), verbose=False)
    with pytest.raises(coppice_ldl.UnavailableError) as unavailable:
        experiment(spec(), server="127.0.0.1:1", wait="100ms", verbose=False)
    assert "coppice-data-" not in str(caught.value) + str(unavailable.value)


def test_another_spec_in_a_folder(tmp_path: pathlib.Path) -> None:
    check_other_specs({"folder": tmp_path / "results"})


def test_another_spec_on_a_cluster(server: str) -> None:
    check_other_specs({"server": server})


def check_other_specs(where: dict[str, Any]) -> None:
    """Repeat an experiment with equal, larger and other specs."""
    first = experiment(spec(), **where, verbose=False).runs
    again = experiment(spec(), **where, verbose=False).runs
    assert list(again["seconds"]) == list(first["seconds"])
    more = experiment(spec(methods=[SABFGS(), AAKNN(k=3)]), **where, verbose=False)
    assert len(more.runs) == 4
    for _ in range(2):  # a refusal changes nothing
        with pytest.raises(InputError) as caught:
            experiment(spec(methods=[AAKNN(k=3), StructRF(trees=3)]), **where, verbose=False)
        text = str(caught.value)
        assert "2 new runs, 2 kept, 2 orphaned" in text and "replace=True leaves these runs out of reports" in text and "--yes" not in text
        assert len(more.runs) == 4 and set(more.runs["method"]) == {"sa-bfgs", "aa-knn k=3"}
    other = experiment(spec(methods=[AAKNN(k=3), StructRF(trees=3)]), **where, replace=True, verbose=False)
    assert set(other.runs["method"]) == {"aa-knn k=3", "structrf trees=3"} and len(other.runs) == 4
    kept = experiment(spec(methods=[SABFGS(), AAKNN(k=3), StructRF(trees=3)]), **where, verbose=False).runs
    assert list(kept[kept["method"] == "sa-bfgs"]["seconds"]) == list(first["seconds"])


def test_a_report_of_a_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = experiment(spec(), folder=tmp_path / "results", verbose=False)
    monkeypatch.chdir(tmp_path)
    again = Report("results")
    assert again.table() == first.table() and list(again.runs["digest"]) == list(first.runs["digest"])
    for path in ("none", tmp_path):
        with pytest.raises(NotFoundError):
            Report(path)


def test_save(tmp_path: pathlib.Path) -> None:
    report = experiment(spec(), verbose=False)
    for name, kind in (("r.html", "html"), ("r.MD", "md"), ("r.csv", "csv"), ("r.tex", "latex"), ("r.json", "json"), ("r.txt", "table")):
        report.save(tmp_path / name, no_times=True)
        assert (tmp_path / name).read_text(encoding="utf-8") == report.table(kind, no_times=True)
    with pytest.raises(InputError, match="r.docx: the suffix decides .* give one of .html, .md, "):
        report.save(tmp_path / "r.docx")
    assert not (tmp_path / "r.docx").exists()


def test_a_failed_run_of_arrays_has_no_command(tmp_path: pathlib.Path) -> None:
    """Its file does not exist any more. The report says how the run is repeated, and this works."""
    methods = [{"estimator": AAKNN(k=1000), "name": "far"}]
    with pytest.warns(UserWarning, match="2 of 2 runs failed"):
        report = experiment(spec(methods=methods), folder=tmp_path / "f", verbose=False)
    failures = report.json()["runs"]["failures"]
    assert len(failures) == 2 and all("command" not in one for one in failures)
    assert all(re.search(r"the file arrays-1\.npz .* an experiment of the dataset d and the method far repeats the run, with this fold in the key only of folds", one["no_command"]) for one in failures)
    with pytest.warns(UserWarning, match="1 of 1 runs failed; the first: k: 1000 neighbours"):
        experiment(spec(methods=methods, folds={"k": 2, "only": [1]}), verbose=False)


HOLES = np.where(np.arange(X.size).reshape(X.shape) == 13, np.nan, X)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"datasets": [{**SET, "sigma": 2}]}, '`sigma` needs labels="age"'),
        ({"datasets": [{**SET, "X": HOLES}]}, 'missing="drop" leaves such samples out, missing=0 replaces'),
        ({"datasets": [{**SET, "D": np.arange(60) % 3}]}, 'labels="class" reads them as classes; labels="age", with `sigma` and `range`, reads'),
        ({"datasets": [{**SET, "D": 2 * D}]}, "normalize=True divides"),
        ({"datasets": [SET, "nothing.csv"]}, 'or skip missing files with missing="skip" in the spec'),
        ({"methods": [AAKNN(k=0)]}, 'the spec, methods[0].k: "0": want auto'),
        ({"methods": [SABFGS(), {"estimator": AAKNN(k=0), "name": "none"}]}, 'the spec, methods[1].k: "0": want auto'),
        ({"methods": [{"algorithm": "aa-knn", "settings": {"k": 0}}]}, 'the spec, methods[0].settings.k: "0": want auto'),
    ],
)
def test_mistakes_in_the_words_of_python(keys: dict[str, Any], text: str) -> None:
    """A mistake names keys and values as Python writes them, not as YAML does, and a parameter of an estimator where it was given."""
    with pytest.raises(InputError) as error:
        experiment(spec(**keys), verbose=False)
    assert text in str(error.value) and "--" not in str(error.value)
