"""The notebooks run from top to bottom."""

from __future__ import annotations

import importlib.util
import inspect
import json
import pathlib
from typing import Any, Callable

import pytest

NOTEBOOKS = pathlib.Path(__file__).parents[1] / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
NEEDS = {"significance.ipynb": ["pandas", "IPython"]}
SECONDS = 600  # for a cell


def words_about_the_first_model(names: "dict[str, Any]") -> None:
    """Check what the notebook says about the samples of its fit."""
    model = names["model"]
    assert model.result_["samples"] == {"train": 640, "validation": 160, "test": 0}
    assert model.settings_["refit"] is True and model.result_["refit_steps"] > 0
    shown = model._repr_html_()
    assert "<td>training samples</td><td>640</td>" in shown and "<td>validation samples</td><td>160</td>" in shown


def words_about_significance(names: "dict[str, Any]") -> None:
    """Check what the notebook says about its tables. If a number changes, change the sentence, too."""
    means, baseline = names["means"], names["baseline"]
    assert {kind for kind, methods in names["worse"].items() if methods} == {"leaves", "interactions", "random"}
    gain = {kind: 1 - means[kind].min() / baseline[kind] for kind in ("leaves", "interactions")}
    assert abs(gain["leaves"] - 0.01) < 0.003 and abs(gain["interactions"] - 0.001) < 0.0005
    assert means["leaves"].idxmin() == "SABFGS"
    leaves = next(one for one in names["found"]["results"] if one["measure"] == "kl" and one["dataset"] == "leaves")
    p_values = {line["method"]: line["against"]["corrected_t_p_holm"] for line in leaves["lines"] if line["method"] != "SABFGS"}
    assert [method for method, p in p_values.items() if p < 0.05] == ["LDSVR"]
    assert names["pairs"] == [("SABFGS", "StructRF")]


# The checks of what notebooks say. Each gets the variables of its notebook after the last cell.
WORDS: dict[str, Callable[["dict[str, Any]"], None]] = {"first-model.ipynb": words_about_the_first_model, "significance.ipynb": words_about_significance}


def read(name: str) -> Any:
    return json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))


def source(cell: Any) -> str:
    return "".join(cell["source"])


def run_with_kernel(name: str, folder: pathlib.Path) -> Any:
    """Run a notebook as Jupyter does, and return it with its outputs. An error of a cell is an error of the test.

    A first cell has even short calls show their progress. A last cell checks what the notebook says.
    """
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("import coppice_ldl._progress as progress\nprogress.QUIET = 0"))
    if check := WORDS.get(name):
        code = f"{inspect.getsource(check)}\n\n{check.__name__}(globals())"
        notebook.cells.append(nbformat.v4.new_code_cell(code))
    nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    return notebook


def run_without_kernel(name: str, old: str = "", new: str = "") -> dict[str, Any]:
    """Run the cells in one namespace, with new in place of old in their sources, and return the namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(read(name)["cells"], 1):
        if cell["cell_type"] == "code":
            exec(compile(source(cell).replace(old, new) if old else source(cell), f"{name}, cell {number}", "exec"), names)  # noqa: S102
    return names


def has_kernel() -> bool:
    """Return True if a kernel can run notebooks."""
    return all(importlib.util.find_spec(package) for package in ("ipykernel", "nbclient", "nbformat"))


@pytest.mark.parametrize("name", NAMES)
def test_notebook(name: str, tmp_path, monkeypatch) -> None:
    """A notebook runs, says what is true, and leaves no files. With ipywidgets and a kernel, each of its bars ends full and green."""
    for package in NEEDS.get(name, ["pandas"]):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    if not has_kernel():
        names = run_without_kernel(name)
        if check := WORDS.get(name):
            check(names)
    else:
        found = run_with_kernel(name, tmp_path).metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
        bars = [one["state"] for one in found.values() if one["model_name"] == "FloatProgressModel"]
        if importlib.util.find_spec("ipywidgets") and importlib.util.find_spec("tqdm"):
            assert bars, "the notebook shows no progress"
        for bar in bars:
            assert (bar["value"], bar["bar_style"]) == (bar["max"], "success"), "the bar of a call that succeeded is not full"
    assert list(tmp_path.iterdir()) == [], "the notebook leaves files"


def test_cluster_of_a_user(server: str, tmp_path, monkeypatch) -> None:
    """The notebook uses a cluster that runs already. If it runs again, it submits nothing new."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        names = run_without_kernel("cluster.ipynb", "\nserver = None ", f"\nserver = {server!r} ")
        assert names["server"] == server and names["quickstart"] is None
        found = list(names["cluster"].jobs()["name"])
        assert [found.count(f"seed-{seed}") for seed in range(1, 5)] == [1, 1, 1, 1]
        assert found.count("study.artificial") == 1


def test_notebooks_have_no_outputs() -> None:
    """Notebooks are committed without outputs, and have the cells that Jupyter expects."""
    assert NAMES == ["cluster.ipynb", "first-model.ipynb", "significance.ipynb"]
    for name in NAMES:
        notebook = read(name)
        assert notebook["nbformat"] == 4
        assert source(notebook["cells"][0]).startswith("# "), f"{name} has no title"
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [] and cell["execution_count"] is None, f"{name} has outputs; clear them"
            else:
                assert cell["cell_type"] == "markdown"
