"""Specs of experiments as dicts: their check, their text, and messages about them."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Mapping

import numpy as np

from . import _checks, _external, _inputs
from ._base import Estimator
from ._errors import InputError, typed, within
from ._options import argument_of, flag_of
from ._parameters import given, settings, settings_of, spelled, utf8


class SpecFile:
    """The file of a spec in a temporary folder, with the files of its arrays.

    Parameters
    ----------
    spec : dict
    folder : str
        The files are written here.
    absolute : bool
        True if the spec names the files by absolute paths.
    """

    def __init__(self, spec: Mapping[str, Any], folder: str, absolute: bool) -> None:
        _check(spec)
        self.path = os.path.join(folder, "spec.yaml")
        self._names: dict[str, str] = {}  # of files, for messages
        self._keys: list[str] = []  # the path of the key of each line
        # Methods whose hyperparameters are parameters of an estimator.
        self._estimators = [i for i, one in enumerate(spec["methods"]) if isinstance(one, Estimator) or isinstance(one, Mapping) and "estimator" in one]
        self.own: dict[int, Any] = {}  # the estimators of other libraries, by the number of the method
        plain = dict(spec)
        plain["methods"], plain["datasets"] = [], []
        for i, one in enumerate(spec["methods"]):
            with within(f"the spec, methods[{i}]"):
                estimator = one.get("estimator") if isinstance(one, Mapping) else one
                if _external.is_own(estimator) and not isinstance(estimator, Estimator):
                    self.own[i] = estimator
                    rest = {key: value for key, value in one.items() if key != "estimator"} if isinstance(one, Mapping) else {}
                    plain["methods"].append({"external": _external.folder_of(i), "name": type(estimator).__name__, **rest})
                else:
                    plain["methods"].append(_method(one))
        for i, one in enumerate(spec["datasets"]):
            with within(f"the spec, datasets[{i}]"):
                plain["datasets"].append(self._dataset(one, folder, absolute))
        lines: list[str] = []
        self._write(json.loads(json.dumps(plain, default=_native)), "", lines)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def _dataset(self, entry: Any, folder: str, absolute: bool) -> Any:
        if not isinstance(entry, Mapping):
            return entry
        entry = {key: spelled(key, value) if key in ("range", "bounds", "shape") and isinstance(value, (tuple, list, np.ndarray)) else value for key, value in entry.items()}
        own = entry.get("validation")
        if "X" not in entry:
            if own is not None and not isinstance(own, (str, os.PathLike)):
                raise InputError("validation: the dataset is a file, so want the path of the file with the validation samples")
            return entry
        rest = {key: value for key, value in entry.items() if key not in ("X", "D", "validation")}
        if not rest.get("name"):
            raise InputError("a dataset with X and D needs a name")
        name = str(rest["name"])
        if "file" in rest:
            raise InputError(f"the dataset {name} has X and file; give one of them")
        if entry.get("D") is None:
            raise InputError(f"the dataset {name} has X but no D")
        columns = {key: rest[key] for key in ("groups", "values", "weights") if rest.get(key) is not None and not isinstance(rest[key], str)}
        arrays = _inputs.dataset(entry["X"], entry["D"], rest.get("labels", "distributions"), **columns)
        validation = _inputs.validation(own, arrays, rest.get("labels", "distributions"), name)
        rest.update(_inputs.columns_of(arrays))
        for key, of, what in (("file", arrays, "the arrays"), ("validation", validation, "the validation samples")):
            if of is not None:
                path = os.path.join(folder, f"arrays-{len(self._names) + 1}.npz")
                np.savez(path, **of)  # type: ignore[arg-type, unused-ignore]
                self._names[path] = f"{what} of {name}"
                rest[key] = path if absolute else os.path.basename(path)
        return rest

    def _write(self, value: Any, key: str, lines: list[str], begin: str = "", end: str = "", depth: int = 0) -> None:
        """Add lines of JSON. A line has at most one key or item, because messages name lines."""
        parts: list[tuple[str, str, Any]] = []
        if isinstance(value, dict):
            parts = [(f"{key}.{name}" if key else name, f"{json.dumps(name)}: ", one) for name, one in value.items()]
        elif isinstance(value, list):
            parts = [(f"{key}[{i}]", "", one) for i, one in enumerate(value)]
        self._keys.append(key)
        indent = " " * depth
        if not parts:
            if isinstance(value, str):
                with within(f"the spec, {key}"):
                    value = utf8(value)
            lines.append(indent + begin + json.dumps(value) + end)
            return
        first, last = "{}" if isinstance(value, dict) else "[]"
        lines.append(indent + begin + first)
        for i, (path, name, one) in enumerate(parts):
            self._write(one, path, lines, name, "," if i + 1 < len(parts) else "", depth + 1)
        lines.append(indent + last + end)
        self._keys.append(key)

    def named(self, text: str) -> str:
        """Return a text with names in place of files, and with keys in place of lines of the spec."""

        def key_of(line: str) -> str:
            key = self._keys[int(line) - 1] if 0 < int(line) <= len(self._keys) else ""
            for i in self._estimators:
                key = key.replace(f"methods[{i}].settings.", f"methods[{i}].", 1)
            parent, dot, last = key.rpartition(".")
            return parent + dot + argument_of(last)

        def of(found: re.Match[str]) -> str:
            key, said = key_of(found[1]), found[2]
            said = re.sub(r"(, the first) in line (\d+)", lambda first: f"{first[1]} at {key_of(first[2])}", said)
            last = re.sub(r"\[\d+\]$", "", key).rpartition(".")[2]
            for repeated in (f"{last}: ", f"{last.rstrip('_')}: "):
                if key and said.startswith(repeated):
                    said = said[len(repeated) :]
            return f"the spec, {key}: {said}" if key else f"the spec: {said}"

        for path, name in self._names.items():
            text = text.replace(path, name)
        return re.sub(re.escape(self.path) + r":(\d+):\d+: (.*)", of, text).replace(self.path, "the spec")


def _check(spec: Mapping[str, Any]) -> None:
    """Raise an error about parts of the wrong type, which the command cannot see."""
    for key in ("methods", "datasets"):
        found = spec.get(key)
        if found is None:
            raise InputError(f"the spec has no {key}; give the key {key} with a list")
        if isinstance(found, str) or not isinstance(found, (list, tuple)):
            raise TypeError(f"the spec, {key}: {typed(found)} is not a list; write {key}=[...], also for one")
    for key, one in (("folds", spec), *((f"datasets[{i}].folds", one) for i, one in enumerate(spec["datasets"]))):
        if isinstance(one, Mapping) and hasattr(one.get("folds"), "__len__") and not isinstance(one["folds"], (str, Mapping)):
            raise InputError(f'the spec, {key}: for folds of your own, give datasets the key groups, an array with the fold of each sample, and folds="groups"')
    for i, one in enumerate(spec["methods"]):
        if isinstance(one, Mapping):
            one = one.get("estimator", "")
            if isinstance(one, str) and one:
                raise TypeError(f"the spec, methods[{i}].estimator: {typed(one)} is not an estimator; a name is the value of the key algorithm")
        if not isinstance(one, str) and not _external.is_own(one):
            _checks.estimator(f"the spec, methods[{i}]", one)
    for i, one in enumerate(spec["datasets"]):
        if not isinstance(one, (str, os.PathLike, Mapping)):
            raise TypeError(f"the spec, datasets[{i}]: {typed(one)} is not a dict with name, X and D, or the path of a file")


def has_files(value: Any) -> bool:
    """Return True if a spec, or a part of one, names a file."""
    if isinstance(value, Mapping):
        datasets = value.get("datasets")
        files = isinstance(datasets, (list, tuple)) and any(isinstance(one, (str, os.PathLike)) for one in datasets)
        return files or "file" in value or any(has_files(value.get(key)) for key in ("datasets", "folds"))
    return isinstance(value, (list, tuple)) and any(has_files(one) for one in value)


def _grid(grid: Any) -> Any:
    """Return a grid, or a list of grids, with the names of the command line. A value that is a list becomes a text."""
    if isinstance(grid, (list, tuple)):
        return [_grid(one) for one in grid]
    if not isinstance(grid, Mapping):
        return grid
    found = {}
    for name, values in grid.items():
        if isinstance(values, (list, tuple)):
            values = [spelled(name, one) if isinstance(one, (list, tuple, np.ndarray)) else one for one in values]
        found[flag_of(name) if isinstance(name, str) else name] = values
    return found


def _method(method: Any) -> Any:
    """Return a method without estimators."""
    entry: dict[str, Any] = {}
    if isinstance(method, Mapping):
        if "grid" in method:
            method = {**method, "grid": _grid(method["grid"])}
        if isinstance(method.get("external"), (str, os.PathLike)):
            method = {**method, "external": os.path.abspath(os.fspath(method["external"]))}
        if "estimator" not in method:
            own, algorithm = method.get("settings"), method.get("algorithm")
            return {**method, "settings": settings_of(algorithm, own)} if isinstance(own, Mapping) and isinstance(algorithm, str) else method
        entry = {key: value for key, value in method.items() if key != "estimator"}
        method = method["estimator"]
        twice = sorted({"algorithm", "preset", "settings"} & set(entry))
        if twice:
            raise InputError(f"a method has an estimator and {', '.join(twice)}; set parameters of the estimator instead")
    if not isinstance(method, Estimator):
        return method
    if method.random_state is not None:
        raise InputError(f"{method!r}: a method of an experiment has no random_state; give the key seed of the spec")
    reading = given(method)
    if reading:
        raise InputError(f"{method!r}: a method of an experiment has no {reading[0]}; give the key {reading[0]} of a dataset in the spec")
    own = settings(method)
    preset = own.pop("preset", None)
    entry["algorithm"] = method._algorithm
    if preset is not None:
        entry["preset"] = preset
    if own:
        entry["settings"] = own
    return entry


def _native(value: Any) -> Any:
    """Return a value of NumPy as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise InputError(f"the spec has a value of the type {type(value).__name__}, which YAML cannot have: {value!r}. An estimator is a method, or the value of its key estimator")
