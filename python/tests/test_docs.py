"""The Python blocks of the pages run, and print what the pages say."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import warnings

import pytest

import coppice_ldl

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ROOT / "docs" / "python"
NEEDS = {"README.md": [], "index.md": ["pandas", "scipy"], "from-scikit-learn.md": ["sklearn 1.4", "pandas", "joblib"], "from-pyldl.md": ["pandas", "scipy", "sklearn"], "model-hubs.md": []}
ADDRESS = "127.0.0.1:7100"  # pages give this address to the cluster
PRINTS = re.compile(r"^\s*print\(.*\)  # (.+)$")


def blocks(text: str) -> list[tuple[int, str]]:
    """Return the Python blocks of a page with the numbers of their first lines, without blocks that are marked as not run."""
    found: list[tuple[int, str]] = []
    lines, mark, fence = text.split("\n"), "", 0
    for number, line in enumerate(lines, 1):
        if fence:
            if line == "```":
                if lines[fence - 1] == "```python" and not mark.startswith("<!-- not run: "):
                    found.append((fence + 1, "\n".join(lines[fence : number - 1])))
                fence, mark = 0, ""
        elif line.startswith("```"):
            fence = number
        elif line.strip():
            mark = line
    return found


def expected(block: str) -> list[str]:
    """Return the lines that a block prints, as the comments after print say."""
    return [match[1] for line in block.split("\n") if (match := PRINTS.match(line))]


def run_block(page: str, line: int, block: str, names: dict) -> None:
    """Run a block in a namespace, and check each line that it says to print."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (line - 1) + block, page, "exec"), names)  # noqa: S102
    lines = iter(printed.getvalue().split("\n"))
    for want in expected(block):
        assert want in lines, f"{page}:{line}: the block does not print {want!r}, or not in this order:\n{printed.getvalue()}"


@pytest.mark.parametrize("page", ["README.md", *sorted(path.name for path in PAGES.glob("*.md"))])
def test_page(page: str, request, tmp_path, monkeypatch) -> None:
    if page not in NEEDS:
        pytest.fail(f"NEEDS has no packages of {page}")
    for package in NEEDS[page]:
        name, _, version = package.partition(" ")
        pytest.importorskip(name, minversion=version or None)
    text = (ROOT / page if page == "README.md" else PAGES / page).read_text(encoding="utf-8")
    found = blocks(text)
    if any(ADDRESS in block for _, block in found):
        address = request.getfixturevalue("server")
        found = [(line, block.replace(ADDRESS, address)) for line, block in found]
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    assert found, f"{page} has no Python block"
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=UserWarning)
        for line, block in found:
            run_block(page, line, block, names)


def test_classes_of_the_page() -> None:
    """The page lists each algorithm with its class."""
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    rows = [line for line in text.split("\n") if re.match(r"^\| `\w+` \| `[a-z0-9-]+` \|", line)]
    pairs = [pair for line in rows for pair in re.findall(r"`(\w+)` \| `([a-z0-9-]+)`", line)]
    assert sorted(pairs) == sorted((estimator.__name__, name) for name, estimator in coppice_ldl.ALGORITHMS.items())
    number = {estimator.__name__ for estimator in coppice_ldl.ALGORITHMS.values() if estimator._predicts == "number"}
    sentence = re.search(r"^(.*) predict a number", text, re.M)
    assert sentence is not None and set(re.findall(r"`(\w+)`", sentence[1])) == number


def test_errors_of_the_page() -> None:
    """The page lists each class of errors with its base class of Python."""
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+Error)` \| (?:`(\w+)`)? ?\|", text, re.M))
    errors = {name for name in coppice_ldl.__all__ if name.endswith("Error")} - {"NotFittedError"}
    assert set(rows) == errors
    for name, base in rows.items():
        assert not base or issubclass(getattr(coppice_ldl, name), getattr(__import__("builtins"), base))


def test_what_is_not_supported() -> None:
    """Estimators lack what the pages say that they lack, and the pages name the networks with initial weights."""
    text = (PAGES / "from-scikit-learn.md").read_text(encoding="utf-8")
    lacks = ["partial_fit", "warm_start", "set_output", "set_fit_request", "set_score_request", "get_metadata_routing", "oob_score"]
    for name in lacks:
        assert f"`{name}`" in text, f"the page does not say that {name} is missing"
        assert all(name not in parameters(one.__name__) for one in coppice_ldl.ALGORITHMS.values()), name
    row = next(line for line in text.split("\n") if line.startswith("| `warm_start`"))
    networks = {one.__name__ for one in coppice_ldl.ALGORITHMS.values() if "init_from" in one().get_params()}
    assert set(re.findall(r"`([A-Z]\w+)`", row)) == networks


def parameters(*classes: str) -> set[str]:
    """Return the parameters of classes, and the names that objects of all classes have."""
    found = {name for one in classes for name in getattr(coppice_ldl, one)().get_params()}
    return found | set(dir(coppice_ldl.Estimator)) | set(coppice_ldl.Estimator.__annotations__)


def test_parameters_of_pyldl() -> None:
    """The classes and parameters to which the page translates PyLDL's exist."""
    text = (PAGES / "from-pyldl.md").read_text(encoding="utf-8")
    section = text[text.index("## Algorithms") : text.index("## Functions")]
    rows = re.findall(r"^\| `\w+` \| `(\w+)` \| (.+) \|$", section, re.M)
    assert len(rows) == 21
    checked = 0
    for one, cell in rows:
        for names in re.findall(r": ((?:`[^`]+`(?:, )?)+)", cell):
            for name in re.findall(r"`(\w+)", names):
                assert name in parameters(one), f"{one} has no parameter {name}"
                checked += 1
    assert checked > 20
    section = text[text.index("## Measures") : text.index("## Seeds")]
    measures = re.findall(r"\| `\w+` \| `(\w+)`", section)
    assert sorted(measures) == sorted(coppice_ldl.metrics.measure_names())


def test_parameters_of_scikit_learn() -> None:
    """The parameters to which the page translates those of other libraries exist."""
    text = (PAGES / "from-scikit-learn.md").read_text(encoding="utf-8")
    tables = text[text.index("## Names of XGBoost") :].split("\n\n")
    checked = 0
    for table in tables:
        head, *rows = [line for line in table.split("\n") if line.startswith("|")] or [""]
        classes = re.findall(r"`(\w+)`", head.rpartition(" | ")[2])
        for row in rows[1:]:
            for name in re.findall(r"`(\w+)(?:=[^`]*)?`", row.rpartition(" | ")[2]):
                assert name in {*parameters(*classes), *classes}, f"{classes} have no parameter {name}"
                checked += 1
    assert checked > 20


def test_blocks() -> None:
    """What counts as a block, and what a block is said to print."""
    page = "text\n```python\nprint(1)  # 1\n```\n<!-- not run: needs a network -->\n```python\n1 / 0\n```\n```text\nx\n```\n\n```python\nx = 2\nprint(x)  # 2\n```\n"
    assert blocks(page) == [(3, "print(1)  # 1"), (14, "x = 2\nprint(x)  # 2")]
    assert expected("a\nprint(x)  # one, two\nprint(y)") == ["one, two"]
    run_block("page", 1, "print(1)\nprint(2)  # 2", {})
    with pytest.raises(AssertionError, match="does not print '3'"):
        run_block("page", 1, "print(1)  # 3", {})
