"""Experiments: every method on every fold of every dataset, and a report with tests."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import warnings
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _checks, _external
from ._base import Estimator
from ._errors import CoppiceError, InputError, NotFoundError, path_of, typed
from ._folder import Folder
from ._load import download, load
from ._parameters import cluster_flags, flags, threads
from ._process import run
from ._progress import Progress, write
from ._spec import SpecFile, has_files
from ._tables import frame
from ._texts import notes_of, plain

# The kind of a report by the suffix of its file.
_SUFFIXES = {".html": "html", ".md": "md", ".csv": "csv", ".tex": "latex", ".json": "json", ".txt": "table"}


class Report:
    """The report of an experiment. It reads the folder or asks the cluster at each use, and shows what later runs add or replace.

    A pickle of a report has the results if they are in a temporary folder, and otherwise the path of the folder or the name on the cluster.

    Parameters
    ----------
    folder : str or path
        The argument `folder` of an experiment that ran on this machine. `Client.experiment` returns the report of an experiment on a
        cluster.

    Raises
    ------
    NotFoundError
        If the folder has no experiment.
    """

    def __init__(self, folder: Union[str, "os.PathLike[str]"]) -> None:
        self._name = os.path.join(os.path.abspath(path_of("Report", folder, "the folder of an experiment")), "")  # it is no name on a cluster
        self._flags: list[str] = []
        self._kept: Any = None  # a temporary folder with the results; it is deleted with this object
        run(["experiment", "report", "-o", "json", "--", self._name])

    @classmethod
    def _of(cls, name: str, flags: Sequence[str] = (), kept: Any = None) -> "Report":
        self = cls.__new__(cls)
        self._name, self._flags, self._kept = name, list(flags), kept
        return self

    def _text(self, kind: str, **options: Any) -> str:
        return run(["experiment", "report", *self._flags, "--format", kind, *flags(options), "--", self._name]).out

    @property
    def runs(self) -> Any:
        """The runs as a DataFrame: dataset, method, repeat, fold, state, seconds, digest, and a column for each measure.

        The column `kl_mean_baseline` has the measure `kl` of the mean baseline. The column `against_mean_baseline` is "better", "not
        better" or "worse": whether the K-L divergence of the model is lower by more than one standard error, over the test samples.
        A failed run has an error, and its measures are NaN.
        """
        found = run(["experiment", "report", *self._flags, "-o", "json", "--", self._name]).json()
        rows = []
        for one in found["runs"]:
            names = {kind: found[kind + "s"][one[kind]]["name"] for kind in ("dataset", "method")}
            row = {**names, "repeat": one.get("repeat", 0), **{key: one[key] for key in one if key not in (*names, "repeat", "values", "mean")}}
            if "against_mean_baseline" in row:
                row["against_mean_baseline"] = row["against_mean_baseline"].get("verdict")
            if row.get("error"):
                row["error"] = plain(row["error"])
            none = [np.nan] * len(found["measures"])  # of a run that failed
            row.update(zip(found["measures"], one.get("values") or none))
            row.update(zip((f"{measure}_mean_baseline" for measure in found["measures"]), one.get("mean") or none))
            rows.append(row)
        return frame(rows)

    def model(self, digest: str) -> Estimator:
        """Return the model of a run as a fitted estimator.

        Parameters
        ----------
        digest : str
            A value of the column `digest` of `runs`.

        Raises
        ------
        NotFoundError
            If the experiment has no such model. ``keep_models=True`` keeps the models of the runs that it trains.
        """
        text = str(digest)
        if self._flags:
            for one in run(["model", "list", *self._flags, "-o", "json"]).json():
                if one["digest"] == text and one["name"].startswith(f"{self._name}."):
                    return download(one["name"], self._flags)
        else:
            with contextlib.suppress(FileNotFoundError):
                return load(os.path.join(self._name, "models", f"{os.path.basename(text)}.model"))
        raise NotFoundError(f"the experiment has not kept a model with the digest {text}; keep_models=True keeps the models of runs that it trains, so give it at the first run", "not_found")

    def json(self, **options: Any) -> dict[str, Any]:
        """Return the report as a dict, as ``coppice experiment report --format json`` prints it."""
        _checks.options("json", "experiment report", options)
        return dict(json.loads(self._text("json", **options)))

    def table(self, kind: str = "table", **options: Any) -> str:
        """Return the report as a text.

        Parameters
        ----------
        kind : {"table", "md", "csv", "latex", "html", "fragment", "json"}
        **options
            Flags of ``coppice experiment report``: ``no_times=True``, ``level=0.01``, ``all_tests=True``, ``sample=True``,
            ``transpose=True``, ``against="structrf"``, and, if `kind` is ``"latex"``, ``bare=True``.
        """
        _checks.options("table", "experiment report", options)
        return self._text(kind, **options)

    def save(self, path: Union[str, "os.PathLike[str]"], **options: Any) -> None:
        """Write the report to a file.

        Parameters
        ----------
        path : str or path
            The suffix decides the kind: .html, .md, .csv, .tex, .json or .txt.
        **options
            As for `table`.
        """
        _checks.options("save", "experiment report", options)
        kind = _SUFFIXES.get(os.path.splitext(path_of("save", path, "a file"))[1].lower())
        if kind is None:
            raise InputError(f"{os.fspath(path)}: the suffix decides the kind of the report; give one of {', '.join(_SUFFIXES)}")
        text = self.table(kind, **options)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def figures(self, folder: Union[str, "os.PathLike[str]"], **options: Any) -> list[str]:
        """Draw the figures of the report to a folder, each as .svg, .png and .pdf, and return their paths.

        Parameters
        ----------
        folder : str or path
            It is made if it does not exist.
        **options
            As for `table`. ``all_tests=True`` draws the figures of every measure, not only of the first.
        """
        _checks.options("figures", "experiment report", options)
        folder = path_of("figures", folder, "a folder")
        os.makedirs(folder, exist_ok=True)
        with Folder("coppice-figures-") as drawn:
            args = ["experiment", "report", *self._flags, *flags(options), "--format", "md", f"--figures={drawn}", f"--out={os.path.join(drawn, 'report.md')}"]
            notes = "\n".join(text for _, text in notes_of(run([*args, "--", self._name]).notes))
            names = sorted(name for name in os.listdir(drawn) if name.endswith((".svg", ".png", ".pdf")))
            if notes and not names:
                warnings.warn(notes, stacklevel=2)
            return [shutil.move(os.path.join(drawn, name), os.path.join(os.fspath(folder), name)) for name in names]

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled. A report of a temporary folder has the files of the folder."""
        state = dict(self.__dict__)
        if self._kept is not None:
            files = {}
            for folder, _, names in os.walk(self._name):
                for name in names:
                    path = os.path.join(folder, name)
                    with open(path, "rb") as file:
                        files[os.path.relpath(path, self._name)] = file.read()
            state["_kept"] = files
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled report. The files of a temporary folder are written to a new one."""
        self.__dict__.update(state)
        if self._kept is not None:
            files, self._kept = self._kept, Folder("coppice-experiment-")
            self._name = os.path.join(self._kept.name, "")
            for name, data in files.items():
                path = os.path.join(self._name, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(data)

    def __repr__(self) -> str:
        return f"<Report {self._name.rstrip(os.sep)}>"

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
    replace: bool = False,
    verbose: Any = "auto",
    **options: Any,
) -> Report:
    """Run an experiment, in this machine's process or on a cluster, and wait for its end.

    Parameters
    ----------
    spec : dict, or str or path
        The spec, as docs/reference/experiment-spec.md describes it, or its file. In a dict, a method may be an estimator, and
        a dataset may be a dict with ``name``, ``X`` and ``D``, and optionally ``folds``. Paths in a dict are relative to the
        working directory. An estimator of another library is an object whose `fit` takes features and distributions, and whose `predict`
        returns distributions. A copy of it is fitted in this process for each fold, at each call.
    folder : str or path, optional
        Folder for the results of an experiment without a cluster. They stay there: runs with a result are not repeated, and
        ``Report(folder)`` reads them again (default: a temporary folder, which is deleted with the report; after an
        interrupt, the runs that ended are in a folder whose name ends with ``-kept``. A line on the standard error names it, and this
        folder does the other runs).
    server, context, token_file, ca_file, tls_dir : str, optional
        The cluster, as for `Client`. Without them, the experiment runs on this machine.
    n_jobs : int, optional
        Number of threads (default: all processors). The results do not depend on it.
    replace : bool
        What to do if the folder, or the cluster under this name, has an experiment with another spec, and the new spec lacks some of its
        runs. False raises InputError with the numbers of new, kept and orphaned runs. True leaves the orphaned runs out of reports. A spec
        that only adds runs needs no agreement.
    verbose : bool or "auto"
        Whether to show the progress.
    **options
        Other flags of ``coppice experiment run``: ``record="curve"``, ``record_again``, ``retry_failed``, ``keep_models``, ``no_budget``,
        ``data`` (the folder of the data files) and ``wait``.

    Returns
    -------
    Report
        On a cluster and on this machine it has the same values, except for times.

    Raises
    ------
    InputError
        If the spec or its data are not valid. Its `mistakes` has all mistakes.
    TypeError
        If an option is unknown, or a part of the spec has a wrong type.
    """
    _checks.options("experiment", "experiment run", options)
    if not isinstance(spec, (str, os.PathLike, Mapping)):
        raise TypeError(f"experiment: {typed(spec)} is not a spec; give a dict, or the path of a file")
    where = cluster_flags(server, context, token_file, ca_file, tls_dir)
    if not isinstance(replace, (bool, np.bool_)):
        raise InputError(f"replace={replace!r}: want True or False")
    local = threads(n_jobs)
    if options.get("keep_models") and not where and folder is None:
        raise InputError("keep_models needs folder, which keeps the models")
    if where and n_jobs is not None:
        raise InputError("n_jobs is for an experiment without a cluster; leave it out")
    if where and folder is not None:
        raise InputError("folder is for an experiment without a cluster; leave it out")
    kept = None if where or folder is not None else Folder("coppice-experiment-")
    base = os.path.abspath(path_of("experiment, folder", folder, "a folder")) if folder is not None else kept.name if kept else ""
    with Progress("experiment", verbose) as progress, Folder("coppice-data-") as data:
        file: Optional[SpecFile] = None
        try:
            if isinstance(spec, Mapping):
                if has_files(spec) and options.get("data") is None:
                    options["data"] = os.getcwd()
                file = SpecFile(spec, data, options.get("data") is not None)
                if file.own:
                    _external.predict(spec, file.own, file.path, options.get("data"), progress)
            path = file.path if file else path_of("experiment", spec, "a spec")
            args = ["experiment", "run", "-o", "jsonl", *flags({**options, "yes": bool(replace)}), *(where or ["--local", "--dir", base, *local])]
            try:
                run([*args, "--", path], (), progress.line, progress.note)
            except CoppiceError as error:
                if error.kind != "runs_failed":  # then the report is complete, and a warning says why runs failed
                    raise
        except BaseException as error:
            temporary = kept.name if kept else ""
            if kept and isinstance(error, KeyboardInterrupt):
                _keep(temporary)
            if kept:
                kept.cleanup()
            if isinstance(error, CoppiceError):
                raise _named(error, file, temporary, "another name" if where else "another folder") from None
            raise
    if file:
        progress.warnings = [file.named(text) for text in progress.warnings]
    progress.warn()
    result = progress.result
    failed = [one for one in result.get("runs", ()) if one.get("state") == "failed"]
    if failed:
        first = plain(failed[0].get("error", ""))
        warnings.warn(f"{len(failed)} of {len(result['runs'])} runs failed; the first: {file.named(first) if file else first}", stacklevel=2)
    if where:
        return Report._of(str(result["name"]), where)
    return Report._of(base, (), kept)


def _keep(folder: str) -> None:
    """Keep the results of an experiment that was interrupted, and say where they are. The process does not delete the new folder.

    If no run has ended, nothing is kept.
    """
    with contextlib.suppress(OSError):  # the process has deleted it, or has written nothing
        if os.path.getsize(os.path.join(folder, "cells.log")):
            other = f"{folder}-kept"
            os.rename(folder, other)
            text = f"experiment: interrupted; the results of runs that ended are in {other}; experiment(spec, folder={other!r}) does the other runs"
            write(text)


def _named(error: CoppiceError, file: Optional[SpecFile], temporary: str, other: str) -> CoppiceError:
    """Return an error of the same class in the words of the library. A single mistake is in `mistakes` too."""
    texts = [str(error), *error.mistakes]
    if temporary:
        texts = [text.replace(temporary, "the temporary folder") for text in texts]
    if file is not None:
        texts = [file.named(text) for text in texts]
    if error.kind == "unavailable":  # not a mistake in the spec
        texts = [re.sub(r"^the spec, [^:]*: (dataset [^:]*: )?", "", text) for text in texts]
    if error.kind == "orphans":
        plan = texts[0].partition("; ")[0]
        return InputError(f"{plan}; replace=True leaves these runs out of reports, {other} keeps both", error.kind)
    if isinstance(error, InputError):
        return InputError(texts[0], error.kind, texts[1:] or texts)
    error.args, error.mistakes = (texts[0],), texts[1:]
    return error
