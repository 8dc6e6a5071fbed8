"""Reports of experiments whose datasets are arrays."""

from __future__ import annotations

import pathlib

import pytest

import coppice_ldl
from coppice_ldl import AAKNN, SABFGS, InputError, OptionError, StructRF
from conftest import make


def spec(**keys):
    """Return the spec of an experiment with a method that cannot train."""
    X, D = make(60)
    methods = [SABFGS(), {"estimator": AAKNN(k=1000), "name": "too many"}]
    return {"name": "arrays", "datasets": [{"name": "one", "X": X, "D": D}], "folds": 2, "methods": methods, "measures": ["kl", "clark"], **keys}


def test_runs_have_names() -> None:
    pytest.importorskip("pandas")
    report = coppice_ldl.experiment(spec())
    runs = report.runs
    assert list(zip(runs["dataset"], runs["method"], runs["fold"])) == [("one", "sa-bfgs", 0), ("one", "sa-bfgs", 1), ("one", "too many", 0), ("one", "too many", 1)]
    done, failed = runs[runs["state"] == "done"], runs[runs["state"] == "failed"]
    assert len(done) == 2 and len(failed) == 2
    assert (0 < done["kl"]).all() and (done["kl"] < done["kl_mean_baseline"]).all() and (done["kl"] < done["clark"]).all()
    assert set(done["against_mean_baseline"]) <= {"better", "not better", "worse"} and failed["against_mean_baseline"].isna().all()
    assert failed["kl"].isna().all() and failed["error"].str.contains("1000 neighbours").all()
    lines = {line["method"]: line for line in report.json()["results"][0]["lines"]}
    assert abs(lines["sa-bfgs"]["mean"] - done["kl"].mean()) < 1e-6


def test_folder(tmp_path: pathlib.Path) -> None:
    """Runs with a result are not repeated, and the folder has no data."""
    folder = tmp_path / "results"
    first = coppice_ldl.experiment(spec(methods=[SABFGS()]), folder=folder)
    second = coppice_ldl.experiment(spec(methods=[SABFGS(), AAKNN()]), folder=folder)
    times = [[run["seconds"] for run in rows(report) if run["method"] == "sa-bfgs"] for report in (first, second)]
    assert times[0] == times[1]
    assert "Their spec is spec.yaml" in second.table()
    assert not list(folder.rglob("*.npz"))


def test_figures(tmp_path: pathlib.Path) -> None:
    """The folder is made if it does not exist."""
    report = coppice_ldl.experiment(spec(methods=[SABFGS()]), record="curve")
    figures = report.figures(tmp_path / "new" / "figures")
    assert figures and all(pathlib.Path(path).stat().st_size > 0 for path in figures)


def test_figures_of_all_measures(tmp_path: pathlib.Path) -> None:
    """all_tests draws every measure, and a wrong option is refused."""
    sets = [dict(zip(("name", "X", "D"), (f"set{seed}", *make(60, seed=seed)))) for seed in range(4)]
    report = coppice_ldl.experiment(spec(datasets=sets, methods=[SABFGS(), AAKNN(), StructRF(trees=2)], measures=["kl", "cosine"]))
    first = report.figures(tmp_path / "first")
    every = report.figures(tmp_path / "every", all_tests=True)
    assert len(every) > len(first) > 0
    assert {pathlib.Path(path).name for path in first} < {pathlib.Path(path).name for path in every}
    with pytest.raises(OptionError, match="figures: there is no option all_measures"):
        report.figures(tmp_path, all_measures=True)


def test_html() -> None:
    """A notebook gets the tables without the styles of a whole page."""
    html = coppice_ldl.experiment(spec(methods=[SABFGS()]))._repr_html_()
    assert html.count("<table") == html.count("</table>") > 2 and "sa-bfgs" in html
    assert not any(part in html for part in ("<style", "<body", "<html"))


def test_mistakes() -> None:
    """An error names the spec, not a temporary file."""
    with pytest.raises(InputError, match=r"the spec, folds: ") as caught:
        coppice_ldl.experiment(spec(folds=1, measure=["kl"]))
    assert len(caught.value.mistakes) == 2
    assert "coppice-data-" not in str(caught.value) + "".join(caught.value.mistakes)


def rows(report) -> list:
    """Return the runs, with or without pandas."""
    return report.runs.to_dict("records") if hasattr(report.runs, "to_dict") else report.runs
