"""The docstrings of estimators: each documented type works, and each example runs."""

from __future__ import annotations

import ast
import doctest
import pathlib
import re
from typing import Any

import numpy as np
import pytest

import coppice_ldl
from conftest import SMALL
from coppice_ldl import StructRF

CLASSES = sorted(coppice_ldl.ALGORITHMS.values(), key=lambda one: one.__name__)
HOLES = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]])  # settings are checked before the data, so a fit trains nothing
ONE = np.array([0, 1, 1])
COUNTS = np.array([[1, 2], [3, 4], [5, 6]])
PAIRS = np.array([[0.5, 0.5], [0.1, 0.9], [0.2, 0.8]])
AGES = {"labels": "age", "sigma": 2.0, "range": (0, 5)}
NEEDS = {("shape", None): {"features": "conv"}, ("sigma", None): AGES, ("labels", "age"): AGES, ("bounds", None): {"labels": "bounded"}}
NAMES = ("init_from", "init_layers", "freeze")  # any text may be a path or a layer, until the data are read

# Values of texts, and of lists of texts, which have a form of their own.
TEXTS: dict[str, list[Any]] = {
    "hidden": ["none", "8,8"],
    "channels": ["none", "4,8"],
    "shape": ["1x1x2", "row", "none"],
    "freeze": ["none", "output"],
    "rates": ["none", "output:2"],
    "init_from": ["none"],
    "init_layers": ["all", "output"],
    "members": ["structrf:trees=3,aa-knn"],
    "features": ["all", "sqrt", "0.5"],
    "k": ["auto"],
}
NDF_HIDDEN = ["4-16", "adaptive", "adaptive-4"]
LISTS: dict[str, list[Any]] = {
    "hidden": [[8, 4]],
    "channels": [[4, 8]],
    "shape": [[1, 1, 2]],
    "freeze": [["output"], ["hidden1", "output"]],
    "init_layers": [["output"]],
    "rates": [["output:2", "hidden1:0.1"]],
}


def documented(estimator: type) -> dict[str, tuple[str, str]]:
    """Return the type and the text of each parameter of a docstring."""
    section = str(estimator.__doc__).split("Parameters\n")[1].split("Attributes\n")[0]
    found = re.findall(r"^    (\w+) : (.*)\n((?:        .*\n)+)", section, re.M)
    return {name: (kind.replace(", optional", ""), " ".join(text.split())) for name, kind, text in found}


def number(text: str, whole: bool) -> Any:
    """Return a number within the documented range."""
    found = re.search(r"Values: a (?:whole )?number from ([-\d.e+]+) to (?:below )?([-\d.e+]+)", text)
    if found is None:
        return 2 if whole else 0.5
    low, high = float(found[1]), float(found[2].rstrip("."))
    return max(int(low), min(3, int(high))) if whole else max(low, min(0.25, high))


def right(estimator: type, name: str, kind: str, text: str) -> list[Any]:
    """Return values of each documented type of a parameter."""
    values: list[Any] = []
    for word in re.findall(r'"([^"]+)"', kind):
        values.append(word)
    for one in re.sub(r"\{.*?\}|\"[^\"]*\"", "", kind).replace(";", " or").split(" or "):
        one = one.strip(" ,")
        if one in ("int", "int, Generator"):
            values += [number(text, True), np.int64(number(text, True))]
        if one in ("int, Generator", "RandomState of NumPy"):
            values += [np.random.default_rng(0), np.random.RandomState(0)]
        if one == "float":
            values += [number(text, False), np.float64(number(text, False))]
        if one == "bool":
            values += [True, False, np.bool_(True)]
        if one.startswith("list of int") or one == "list of str":
            for items in LISTS[name]:
                values += [items, tuple(items), np.array(items)]
        if one == "tuple of two int":
            values += [(0, 1), [0, 1], np.array([0, 1])]
        if one == "tuple of two float":
            values += [(0.0, 1.0), [0, 1], np.array([0.0, 1.0])]
        if one == "list of these":
            values += [[(0, 1), (0.0, 2.5)]]
        if one.startswith("list of estimators"):
            values += [[StructRF(trees=3), "aa-knn"], [{"algorithm": "structrf", "trees": 3}, "aa-knn"], ("structrf", "aa-knn")]
        if one == "str":
            values += NDF_HIDDEN if (estimator.__name__, name) == ("NDF", "hidden") else TEXTS[name]
    return values


def wrong(name: str, kind: str) -> list[Any]:
    """Return values of types that a parameter does not document. Normalize and verbose take what counts as true or false."""
    if name in ("normalize", "verbose"):
        return [{"a": 1}, "no such value"]
    values: list[Any] = [] if name in NAMES else [{"a": 1}]
    if "str" not in kind and '"' not in kind:
        values.append("no such value")
    if kind.startswith("{") and "float" not in kind:
        values += ["no such value", 0.123]
    if "list" not in kind and "tuple" not in kind:
        values += [[1, 2], (1, 2)]
        values += [] if name in ("labels", "n_jobs", "features") else [np.array([1, 2])]
    if "bool" not in kind and name not in NAMES:
        values.append(True)
    if kind == "bool":
        values.append("yes")
    if kind == "int":
        values.append(0.5)
    return values


def outcome(estimator: type, name: str, value: Any) -> str:
    """Return "accepted" if the binary reads the settings, and the error about them otherwise."""
    needed = NEEDS.get((name, None)) or (NEEDS.get((name, value)) if isinstance(value, str) else None) or {}
    predicts = estimator._predicts  # type: ignore[attr-defined]
    ages = AGES if predicts == "number" and name != "bounds" or predicts == "targets" and name in ("range", "sigma") else {}
    plain = {"labels": "distributions"} if predicts == "targets" and name == "normalize" else {}
    made: Any = estimator(**{**ages, **plain, **needed, name: value})
    if name == "labels" and value != "age":
        made.sigma, made.range = None, (0, 1) if ages and value not in ("class", "incomplete", "bounded") else None
    X, D = HOLES, {"age": ONE, "class": ONE, "counts": COUNTS}.get(str(made.labels), PAIRS)
    if name == "missing":  # all values but "refuse" train a model
        made = estimator(**{**SMALL.get(made._algorithm, {}), **AGES, name: value})
        X, D = np.vstack([HOLES] * 40), np.arange(120) % 6
    try:
        made.fit(X, D)
    except coppice_ldl.InputError as error:
        found = ("NaN is not a finite number", "these algorithms predict targets", "predicts targets in bounds, but the labels")
        return "accepted" if any(text in str(error) for text in found) else str(error)
    return "accepted"


@pytest.mark.parametrize("estimator", CLASSES, ids=lambda one: one.__name__)
@pytest.mark.filterwarnings("ignore:.*samples")
def test_documented_types(estimator: type) -> None:
    """The binary takes a value of each documented type of each parameter, and refuses values of other types."""
    found = documented(estimator)
    assert set(found) == set(estimator().get_params())
    for name, (kind, text) in found.items():
        values = right(estimator, name, kind, text)
        listed = text.partition("Values: ")[2].partition(" Default")[0]
        assert "str" in kind or '"' not in listed, f"{name} : {kind}, but its text says {listed}"
        assert values, f"{name} : {kind}: the test knows no value of this type"
        for value in values:
            assert outcome(estimator, name, value) == "accepted", f"{name}={value!r} : {kind}"
        for value in wrong(name, kind):
            said = outcome(estimator, name, value)
            assert said != "accepted", f"{name}={value!r} is accepted, but its type is {kind}"
            assert isinstance(value, dict) or name.rstrip("_") in said, f"{name}={value!r}: the error does not name the parameter: {said}"


@pytest.mark.parametrize("estimator", CLASSES, ids=lambda one: one.__name__)
def test_example(estimator: type) -> None:
    """The example of a docstring runs as it is, and prints what it says."""
    found = doctest.DocTestFinder(recurse=False).find(estimator, estimator.__name__, globs={})
    assert len(found) == 1 and len(found[0].examples) >= 5
    assert doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE).run(found[0]).failed == 0


@pytest.mark.parametrize("estimator", CLASSES, ids=lambda one: one.__name__)
def test_attributes(estimator: type) -> None:
    """A fitted estimator has each attribute of its docstring, and the docstring has each public attribute."""
    section = str(estimator.__doc__).split("Attributes\n")[1]
    names = set(re.findall(r"^    (\w+_) : ", section, re.M))
    pandas = pytest.importorskip("pandas")
    labels: dict[str, Any] = {"labels": "age", "sigma": 2.0, "range": (0, 5)} if estimator._predicts == "number" else {"labels": "class"}  # type: ignore[attr-defined]
    targets = estimator._predicts == "targets"  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.random((60, 2)), columns=["a", "b"])
    fitted = estimator().fit(X, rng.random((60, 2))) if targets else estimator(**labels).fit(X, np.arange(60) % 3)
    has = {name for name in vars(fitted) if name.endswith("_") and name not in fitted.get_params()}
    assert has == names - ({"classes_"} if targets or labels["labels"] == "age" else set())


def test_imports_run_one_way() -> None:
    """No module of the library imports, directly or through others, a module that imports it."""
    folder = pathlib.Path(coppice_ldl.__file__).parent
    uses: dict[str, set[str]] = {}
    for path in folder.glob("*.py"):
        found = uses.setdefault(path.stem, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith("coppice_ldl")):
                module = str(node.module or "").removeprefix("coppice_ldl").removeprefix(".")
                found |= {module} if module else {name.name for name in node.names}
    done: list[str] = []
    while ready := [name for name in uses if name not in done and not (uses[name] & uses.keys()) - set(done)]:
        done += ready
    assert set(done) == set(uses), f"these import each other: {sorted(set(uses) - set(done))}"
