"""The recipes for MLflow, skops and Hugging Face run where these packages are installed."""

from __future__ import annotations

import pytest

from test_docs import PAGES, run_block

PAGE = "model-hubs.md"
SECTIONS = {"MLflow": ["mlflow 3.0", "skops"], "skops": ["skops", "sklearn"], "Hugging Face": ["huggingface_hub"]}


def sections() -> dict[str, list[tuple[int, str]]]:
    """Return the Python blocks of each section of the page, with the numbers of their first lines."""
    found: dict[str, list[tuple[int, str]]] = {"": []}
    name, block, start = "", [], 0
    for number, line in enumerate((PAGES / PAGE).read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("## "):
            name = line[3:]
            found[name] = []
        elif line == "```python":
            block, start = [], number + 1
        elif line == "```" and start:
            found[name].append((start, "\n".join(block)))
            start = 0
        elif start:
            block.append(line)
    return found


def test_sections() -> None:
    assert [name for name in sections() if name] == list(SECTIONS)


@pytest.mark.parametrize("name", list(SECTIONS))
def test_recipe(name: str, tmp_path, monkeypatch) -> None:
    """Each block prints what the page says. The block about the Hub itself needs an account, and is not run."""
    for package in SECTIONS[name]:
        module, _, version = package.partition(" ")
        pytest.importorskip(module, minversion=version or None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names: dict = {"__name__": "page"}
    blocks = [*sections()[""], *(one for one in sections()[name] if "HfApi" not in one[1])]
    assert len(blocks) > 1
    for line, block in blocks:
        run_block(PAGE, line, block, names)
