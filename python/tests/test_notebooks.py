"""The notebooks run from top to bottom."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

NOTEBOOKS = pathlib.Path(__file__).parents[1] / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
NEEDS = {"significance.ipynb": ["pandas", "IPython"]}
SECONDS = 600  # for a cell


def read(name: str) -> Any:
    return json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))


def source(cell: Any) -> str:
    return "".join(cell["source"])


def run_with_kernel(name: str, folder: pathlib.Path) -> None:
    """Run a notebook as Jupyter does. An error of a cell is an error of the test."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def run_without_kernel(name: str) -> None:
    """Run the cells in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(read(name)["cells"], 1):
        if cell["cell_type"] == "code":
            exec(compile(source(cell), f"{name}, cell {number}", "exec"), names)  # noqa: S102


def has_kernel() -> bool:
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401
        import nbformat  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_notebook(name: str, tmp_path, monkeypatch) -> None:
    for package in NEEDS.get(name, ["pandas"]):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    if has_kernel():
        run_with_kernel(name, tmp_path)
    else:
        run_without_kernel(name)
    assert list(tmp_path.iterdir()) == [], "the notebook leaves files"


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
