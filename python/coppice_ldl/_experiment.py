"""Experiments: every method on every fold of every dataset, and a report with tests."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _inputs
from ._base import COMMON, Estimator
from ._commands import cluster_flags, flags, frame, threads
from ._process import Folder, InputError, run
from ._progress import Progress


class Report:
    """The report of an experiment."""

    def __init__(self, source: Sequence[str], kept: Any = None) -> None:
        self._name, *self._flags = source
        self._kept = kept  # a temporary folder with the results; it is deleted with this object

    def _text(self, kind: str, **options: Any) -> str:
        return run(["experiment", "report", *self._flags, "--format", kind, *flags(options), "--", self._name]).out

    @property
    def runs(self) -> Any:
        """The runs as a DataFrame: dataset, method, repeat, fold, state, seconds, digest, and a column for each measure.

        The column `kl_mean_baseline` has the measure `kl` of the mean baseline. A failed run has an error, and its measures are NaN.
        """
        found = run(["experiment", "report", *self._flags, "-o", "json", "--", self._name]).json()
        rows = []
        for one in found["runs"]:
            names = {kind: found[kind + "s"][one[kind]]["name"] for kind in ("dataset", "method")}
            row = {**names, "repeat": one.get("repeat", 0), **{key: one[key] for key in one if key not in (*names, "repeat", "values", "mean")}}
            none = [np.nan] * len(found["measures"])  # of a run that failed
            row.update(zip(found["measures"], one.get("values") or none))
            row.update(zip((f"{measure}_mean_baseline" for measure in found["measures"]), one.get("mean") or none))
            rows.append(row)
        return frame(rows)

    def json(self, **options: Any) -> dict[str, Any]:
        """Return the report as a dict, as ``coppice experiment report --format json`` prints it."""
        return dict(json.loads(self._text("json", **options)))

    def table(self, kind: str = "table", **options: Any) -> str:
        """Return the report as a text.

        Parameters
        ----------
        kind : {"table", "md", "csv", "latex", "html", "json"}
        **options
            Flags of ``coppice experiment report``, such as ``no_times=True`` or ``level=0.01``.
        """
        return self._text(kind, **options)

    def figures(self, folder: Union[str, "os.PathLike[str]"]) -> list[str]:
        """Draw the figures of the report to a folder, each as .svg and .png, and return their paths."""
        os.makedirs(folder, exist_ok=True)
        self._text("md", figures=os.fspath(folder), out=os.path.join(os.fspath(folder), "report.md"))
        return sorted(os.path.join(os.fspath(folder), name) for name in os.listdir(folder) if name.endswith((".svg", ".png")))

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        page = self.table("html")
        return "<div>" + page[page.index("<body>") + len("<body>") : page.rindex("</body>")] + "</div>"  # its styles would change the notebook


def experiment(
    spec: Union[str, "os.PathLike[str]", Mapping[str, Any]],
    *,
    folder: Union[str, "os.PathLike[str]", None] = None,
    server: Optional[str] = None,
    context: Optional[str] = None,
    token_file: Optional[str] = None,
    ca_file: Optional[str] = None,
    tls_dir: Optional[str] = None,
    n_jobs: Optional[int] = None,
    verbose: Any = "auto",
    **options: Any,
) -> Report:
    """Run an experiment, in this machine's process or on a cluster, and wait for its end.

    Parameters
    ----------
    spec : dict, or str or path
        The spec, as docs/reference/experiment-spec.md describes it, or its file. In a dict, a method may be an estimator, and
        a dataset may be a dict with ``name``, ``X`` and ``D``, and optionally ``folds``. Paths in a dict are relative to the
        working directory.
    folder : str or path, optional
        Folder for the results of an experiment without a cluster. Runs with a result there are not repeated (default: a temporary
        folder, which is deleted with the report).
    server, context, token_file, ca_file, tls_dir : str, optional
        The cluster, as for `Client`. Without them, the experiment runs on this machine.
    n_jobs : int, optional
        Number of threads (default: all processors). The results do not depend on it.
    verbose : bool or "auto"
        Whether to show the progress.
    **options
        Other flags of ``coppice experiment run``, such as ``record="curve"`` or ``keep_models=True``.

    Returns
    -------
    Report
        On a cluster and on this machine it has the same values, except for times.

    Raises
    ------
    InputError
        If the spec or its data are not valid. Its `mistakes` has all mistakes.
    """
    where = cluster_flags(server, context, token_file, ca_file, tls_dir)
    if where and folder is not None:
        raise InputError("folder is for an experiment without a cluster; leave it out")
    kept = None if where or folder is not None else Folder("coppice-experiment-")
    base = os.fspath(folder) if folder is not None else kept.name if kept else ""
    with Progress("experiment", verbose) as progress, Folder("coppice-data-") as data:
        path = os.path.join(data, "spec.yaml")
        names = {path: "the spec"}
        if isinstance(spec, Mapping):
            if _has_files(spec):
                options.setdefault("data", os.getcwd())
            plain = _plain(spec, data, "data" in options, names)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(plain, file)
        else:
            path = os.fspath(spec)
        args = ["experiment", "run", path, "-o", "json", "--yes", *flags(options)]
        args += where or ["--local", "--dir", base, *threads(n_jobs)]
        try:
            done = run(args, (), None, progress.note)
        except BaseException as error:
            if kept:
                kept.cleanup()
            if isinstance(error, InputError):
                raise _named(error, names) from None
            raise
    result = done.json()
    failed = [one for one in result.get("runs", ()) if one.get("state") == "failed"]
    if failed:
        warnings.warn(f"{len(failed)} of {len(result['runs'])} runs failed; the first: {failed[0].get('error', '')}", stacklevel=2)
    if where:
        return Report([_name(result, spec), *where])
    return Report([base], kept)


def _named(error: InputError, names: Mapping[str, str]) -> InputError:
    """Return an error with names in place of temporary files. A single mistake is in `mistakes` too."""
    texts = [str(error), *error.mistakes]
    for path, name in names.items():
        texts = [text.replace(path, name) for text in texts]
    return InputError(texts[0], error.kind, texts[1:] or texts)


def _name(result: Any, spec: Any) -> str:
    found = result.get("name") if isinstance(result, dict) else None
    if found is None and isinstance(spec, Mapping):
        found = spec.get("name")
    if found is None:
        raise InputError("the experiment has no name")
    return str(found)


def _has_files(value: Any) -> bool:
    """Return True if a spec, or a part of one, names a file."""
    if isinstance(value, Mapping):
        files = any(isinstance(one, (str, os.PathLike)) for one in value.get("datasets") or ())
        return files or "file" in value or any(_has_files(value.get(key)) for key in ("datasets", "folds"))
    return isinstance(value, (list, tuple)) and any(_has_files(one) for one in value)


def _plain(spec: Mapping[str, Any], data: str, absolute: bool, names: dict[str, str]) -> dict[str, Any]:
    """Return the spec as JSON has it. Arrays are written to files of the folder data, which get names for messages."""
    plain = dict(spec)
    plain["methods"] = [_method(m) if isinstance(m, Estimator) or isinstance(m, Mapping) and "estimator" in m else m for m in spec.get("methods", [])]
    plain["datasets"] = [_dataset(d, data, absolute, names) if isinstance(d, Mapping) and "X" in d else d for d in spec.get("datasets", [])]
    return json.loads(json.dumps(plain, default=_native))  # type: ignore[no-any-return]


# What a spec has in place of parameters of estimators.
_PLACES = {"random_state": "the key seed", **{name: f"the key {name} of a dataset" for name in ("labels", "sigma", "range", "missing", "normalize")}}


def _method(method: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if isinstance(method, Mapping):
        entry = {key: value for key, value in method.items() if key != "estimator"}
        method = method["estimator"]
        twice = sorted({"algorithm", "preset", "settings"} & set(entry))
        if twice:
            raise InputError(f"a method has an estimator and {', '.join(twice)}; set parameters of the estimator instead")
    given = method.get_params()
    for name, place in _PLACES.items():
        if given[name] not in (None, False, "distributions"):
            raise InputError(f"{method!r}: a method of an experiment has no {name}; give {place} in the spec")
    settings = {name.rstrip("_"): value for name, value in given.items() if name not in COMMON and value is not None}
    preset = settings.pop("preset", None)
    entry["algorithm"] = method._algorithm
    if preset is not None:
        entry["preset"] = preset
    if settings:
        entry["settings"] = settings
    return entry


def _dataset(entry: Mapping[str, Any], data: str, absolute: bool, names: dict[str, str]) -> dict[str, Any]:
    rest = {key: value for key, value in entry.items() if key not in ("X", "D")}
    if not rest.get("name"):
        raise InputError("a dataset with X and D needs a name")
    name = str(rest["name"])
    if "file" in rest:
        raise InputError(f"the dataset {name} has X and file; give one of them")
    if entry.get("D") is None:
        raise InputError(f"the dataset {name} has X but no D")
    arrays = _inputs.dataset(entry["X"], entry["D"], rest.get("labels", "distributions"))
    path = os.path.join(data, f"{len(names)}.npz")
    np.savez(path, **arrays)  # type: ignore[arg-type, unused-ignore]
    names[path] = f"the arrays of {name}"
    return {**rest, "file": path if absolute else os.path.basename(path)}


def _native(value: Any) -> Any:
    """Return a value of NumPy as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (tuple, set)):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise InputError(f"the spec has a value of the type {type(value).__name__}, which YAML cannot have: {value!r}")


__all__ = ["Report", "experiment"]
