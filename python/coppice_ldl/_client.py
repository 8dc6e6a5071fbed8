"""A cluster: its jobs, models, datasets and experiments."""

from __future__ import annotations

import datetime
import os
from typing import Any, Mapping, Optional

from . import _checks, _inputs
from ._arrays import Files
from ._base import Estimator
from ._errors import InputError, NotFoundError, OptionError, within
from ._experiment import Report
from ._load import download
from ._models import curve_of
from ._options import OPTIONS
from ._parameters import cluster_flags, flags, given, seconds, seed_flag, training_flags, without_tokens
from ._process import run
from ._progress import Progress
from ._tables import table, time_of
from ._texts import plain


class Client:
    """A cluster.

    Without arguments, the variable ``COPPICE_SERVER`` names the cluster, or the current context of
    ``coppice context``, or else 127.0.0.1:7100.

    Parameters
    ----------
    server : str, optional
        Addresses of coordinators, separated by commas.
    context : str, optional
        Name of a context.
    token_file, ca_file, tls_dir : str, optional
        Paths of a token, of the authorities of the cluster, and of a folder with a certificate.
    """

    def __init__(
        self,
        server: Optional[str] = None,
        *,
        context: Optional[str] = None,
        token_file: Optional[str] = None,
        ca_file: Optional[str] = None,
        tls_dir: Optional[str] = None,
    ) -> None:
        self._where = cluster_flags(server, context, token_file, ca_file, tls_dir)

    def __repr__(self) -> str:
        given = (flag.lstrip("-").partition("=") for flag in self._where)
        return without_tokens(f"Client({', '.join(f'{name.replace(chr(45), chr(95))}={value!r}' for name, _, value in given)})")

    def _ask(self, command: str, *names: str, **options: Any) -> Any:
        return run([*command.split(), "-o", "json", *flags(options), *self._where, "--", *names]).json()

    def status(self) -> dict[str, Any]:
        """Return the coordinators and workers, as ``coppice cluster show -o json`` prints them."""
        return dict(self._ask("cluster show"))

    # Jobs.

    def jobs(self, **options: Any) -> Any:
        """List jobs as a DataFrame. Its times are datetimes in UTC.

        Parameters
        ----------
        **options
            ``state="running"``, ``name``, ``algorithm``, ``dataset``, ``owner``, ``mine=True``, ``since``, ``until``, ``sort``,
            ``limit`` and ``after``, as for ``coppice job list``.
        """
        _checks.options("jobs", "job list", options)
        return table("jobs", self._ask("job list", **options))

    def job(self, name: Any) -> "Job":
        """Return a job by its name or number."""
        return Job(self, self._ask("job show", str(name)))

    def submit(self, estimator: Estimator, X: Any, D: Any = None, *, name: Optional[str] = None, groups: Any = None, sample_weight: Any = None, validation: Any = None, **options: Any) -> "Job":
        """Submit a job that trains an estimator, and return at once.

        Parameters
        ----------
        estimator : Estimator
            The job has its parameters. It is not changed.
        X : array-like, sparse matrix or str
            Features, or the name of a dataset of the cluster.
        D : array-like, optional
            Label distributions; None if X is a name.
        name : str, optional
            Name of the job.
        groups : array-like of shape (n_samples,), optional
            The group of each sample, such as a person. Validation samples and inner folds are whole groups. The option
            ``folds="groups"`` needs it.
        sample_weight : array-like of shape (n_samples,), optional
            The weight of each sample, as for `Estimator.fit`. With ``weighted_measures=True``, measures are weighted, too.
        validation : tuple (X, D), optional
            Validation samples of your own, as for `Estimator.fit`.
        **options
            Other flags of ``coppice job submit``: ``folds=10``, ``fold``, ``fold_seed``, ``test_fraction=0.2``, ``train_fraction``, ``split``, ``measures``,
            ``clip``, ``audit`` and ``wait``. With ``shared=True`` all users of the cluster may read the data, the model and the
            predictions; otherwise only you and admins may.

        Raises
        ------
        InputError
            If the estimator says how labels are read, but X is the name of a dataset. It was read when it was imported.
        """
        estimator = _checks.estimator("submit", estimator)
        for option in set(options) - set(OPTIONS["job submit"]):
            if option in estimator._parameters():
                raise OptionError(f"submit: {option} is a parameter of {type(estimator).__name__}; give it to the estimator")
        _checks.options("submit", "job submit", options)
        if not isinstance(options.get("split", ""), (str, os.PathLike)):
            raise InputError("split: want the path of a file")
        args = ["job", "submit", "-o", "json", "--algorithm", estimator._algorithm, *training_flags(estimator, isinstance(X, str)), *self._where]
        args += flags({"name": name, **options})
        with Files() as files, Progress("submit", False) as progress:
            if isinstance(X, str):
                if D is not None:
                    raise InputError(f"X is the name {X!r} of a dataset, which has labels; leave out D")
                if groups is not None:
                    raise InputError(f"the dataset {X} was imported with its groups; leave out groups")
                if sample_weight is not None:
                    raise InputError(f"the dataset {X} was imported with its weights; leave out sample_weight")
                if validation is not None:
                    raise InputError(f"the dataset {X} was imported with its validation samples, if it has some; leave out validation")
                read = given(estimator)
                if read:
                    raise InputError(f"{estimator!r}: the dataset {X} was imported with its own {', '.join(read)}; leave out what the estimator says, or give X and D")
                args += ["--dataset", X]
            else:
                data = _inputs.dataset(X, D, estimator.labels, type(estimator).__name__, groups, weights=sample_weight)
                args += ["--data", files.data(data), *flags(_inputs.columns_of(data))]
                own = _inputs.validation(validation, data, estimator.labels, type(estimator).__name__)
                if own is not None:
                    args += ["--validation", files.data(own)]
            args.append(seed_flag(estimator.random_state))
            submitted = run(args, files.descriptors, None, progress.note).json()
        progress.warn()
        return self.job(submitted["id"])

    # Models.

    def models(self, **options: Any) -> Any:
        """List models as a DataFrame.

        Parameters
        ----------
        **options
            ``name``, ``algorithm``, ``dataset``, ``owner``, ``since``, ``until``, ``sort``, ``limit`` (the most rows) and
            ``after``, as for ``coppice model list``.
        """
        _checks.options("models", "model list", options)
        return table("models", self._ask("model list", **options))

    def model(self, name: str) -> Estimator:
        """Download a model by the name of its job, and return it as a fitted estimator."""
        return download(str(name), self._where)

    def delete_model(self, name: str) -> None:
        """Delete a model."""
        self._ask("model delete", name)

    # Datasets.

    def datasets(self, **options: Any) -> Any:
        """List datasets as a DataFrame.

        Parameters
        ----------
        **options
            ``name`` (a ``*`` stands for any characters), ``owner``, ``since="7d"``, ``until``, ``sort``, ``limit`` and
            ``after``, as for ``coppice dataset list``.
        """
        _checks.options("datasets", "dataset list", options)
        return table("datasets", self._ask("dataset list", **options))

    def import_dataset(self, X: Any, D: Any = None, *, name: str, verbose: Any = "auto", **options: Any) -> dict[str, Any]:
        """Import a dataset. The cluster keeps one copy of equal data.

        Parameters
        ----------
        X : array-like, sparse matrix, or path of a data file
        D : array-like, optional
            Label distributions, classes or numbers; None if X is a path.
        name : str
        **options
            Flags of ``coppice dataset import``, such as ``labels="class"`` or ``label_columns=["happy", "sad"]``. If X is an array,
            ``groups`` is an array with the group of each sample, ``values`` an array with the exact numbers of ages, and
            ``weights`` an array with the weight of each sample. ``validation`` is a tuple (X, D) of validation samples, or
            the path of their file if X is a path.

        Returns
        -------
        dict
            The output of ``coppice dataset import -o json``.
        """
        _checks.options("import_dataset", "dataset import", options)
        args = ["dataset", "import", "-o", "json", "--name", name, *self._where]
        with Files() as files, Progress("import", verbose) as progress:
            if isinstance(X, (str, os.PathLike)):
                if D is not None:
                    raise InputError(f"X is the path {os.fspath(X)!r} of a file, which has labels; leave out D")
                if options.get("validation") is not None and not isinstance(options["validation"], (str, os.PathLike)):
                    raise InputError("validation: X is a path, so want the path of the file with the validation samples")
                args += ["--data", os.fspath(X)]
            elif D is None:
                raise InputError("import_dataset: X is an array, so give D too")
            else:
                if options.get("intervals") is not None:
                    raise InputError("import_dataset: intervals are columns of a file; write the arrays to a file with numpy.savez, and give its path")
                columns: dict[str, Any] = {key: options.get(key) for key in ("groups", "values", "weights")}
                data = _inputs.dataset(X, D, options.get("labels", "distributions"), **columns)
                args += ["--data", files.data(data)]
                options.update(_inputs.columns_of(data))
                own = _inputs.validation(options.pop("validation", None), data, options.get("labels", "distributions"), "coppice")
                if own is not None:
                    args += ["--validation", files.data(own)]
            args += flags(options)
            imported = dict(run(args, files.descriptors, None, progress.note).json())
        progress.warn()
        return imported

    def share_dataset(self, name: str) -> None:
        """Let all users of the cluster read a dataset of yours."""
        self._ask("dataset share", name)

    def delete_dataset(self, name: str) -> None:
        """Delete a dataset."""
        self._ask("dataset delete", name)

    # Experiments.

    def experiments(self, **options: Any) -> Any:
        """List experiments as a DataFrame.

        Parameters
        ----------
        **options
            ``state``, ``name``, ``owner``, ``since``, ``until``, ``sort``, ``limit`` and ``after``, as for
            ``coppice experiment list``.
        """
        _checks.options("experiments", "experiment list", options)
        return table("experiments", self._ask("experiment list", **options))

    def experiment(self, name: str) -> Report:
        """Return the report of an experiment of the cluster.

        Raises
        ------
        NotFoundError
            If the cluster has no experiment of this name.
        """
        if name not in [one["name"] for one in self._ask("experiment list") or ()]:
            raise NotFoundError(f"the cluster has no experiment {str(name)!r}; the method experiments lists them", "not_found")
        if not self._where and os.path.exists(name):  # the command would read it
            raise InputError(f"the working directory has {name}, too; give server or context to Client")
        return Report._of(name, self._where)


class Job(Mapping[str, Any]):
    """A job of a cluster. It is a mapping with the keys of ``coppice job show -o json``, so times are Unix seconds there."""

    def __init__(self, client: Client, info: Mapping[str, Any]) -> None:
        self._client = client
        self._info = dict(info)

    def __getitem__(self, key: str) -> Any:
        return self._info[key]

    def __iter__(self) -> Any:
        return iter(self._info)

    def __len__(self) -> int:
        return len(self._info)

    @property
    def name(self) -> str:
        """Name of the job."""
        return str(self._info["name"])

    @property
    def state(self) -> str:
        """State of the job when it was asked for: queued, running, paused, done, failed or cancelled."""
        return str(self._info["state"])

    @property
    def submitted(self) -> Optional[datetime.datetime]:
        """Time of the submission, in UTC."""
        return time_of(self._info.get("submitted"))

    @property
    def started(self) -> Optional[datetime.datetime]:
        """Time of the start, in UTC, or None."""
        return time_of(self._info.get("started"))

    @property
    def ended(self) -> Optional[datetime.datetime]:
        """Time of the end, in UTC, or None."""
        return time_of(self._info.get("ended"))

    def refresh(self) -> "Job":
        """Ask the cluster for the state of the job, and return the job."""
        self._info = dict(self._client._ask("job show", str(self._info["id"])))
        return self

    def wait(self, timeout: Optional[float] = None, *, verbose: Any = "auto") -> "Job":
        """Wait until the job ends. An interrupt ends the wait, not the job.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait (default: until the job ends).
        verbose : bool or "auto"
            Whether to show the progress. Unless it is False, a line on the standard error says if the job is paused, or
            if the cluster has not answered for some seconds. The wait goes on in both cases.

        Returns
        -------
        Job
            This object, with the last state.

        Raises
        ------
        JobTimeoutError
            If the job has not ended in time. It is a TimeoutError, and its text has the state of the job. The job continues.
        CoppiceError
            If the job fails or is cancelled.
        UnavailableError
            If no coordinator answers the first request within 4 seconds. With a shorter `timeout`, this is a JobTimeoutError, at the
            earliest after one second. Once the cluster has answered, the wait does not end because the cluster is away.
        """
        args = ["job", "watch", str(self._info["id"]), "-o", "jsonl", *self._client._where]
        if timeout is not None:
            with within(f"timeout={timeout!r}"):
                args.append(f"--timeout={seconds(timeout, 1e-3)}")
        with Progress(self.name, verbose, self.name) as progress:
            run(args, (), progress.line, progress.note)
        return self.refresh()

    def _change(self, verb: str, **options: Any) -> "Job":
        self._client._ask(f"job {verb}", str(self._info["id"]), **options)
        return self.refresh() if verb != "delete" else self

    def cancel(self) -> "Job":
        """Cancel the job."""
        return self._change("cancel")

    def pause(self) -> "Job":
        """Pause the job."""
        return self._change("pause")

    def resume(self) -> "Job":
        """Resume the job."""
        return self._change("resume")

    def delete(self) -> None:
        """Delete the job."""
        self._change("delete")

    def share(self) -> "Job":
        """Let all users of the cluster read the models and predictions of the job."""
        return self._change("share")

    def model(self, fold: Optional[int] = None) -> Estimator:
        """Download the model of the job. A job with folds has a model for each fold, counted from 0."""
        folds = ((self._info.get("job") or {}).get("split") or {}).get("folds")
        if folds and fold is None:
            raise InputError(f"job {self.name} has a model for each of {folds} folds; give fold, from 0")
        return self._client.model(self.name if fold is None else f"{self.name}/{fold}")

    def learning_curve(self) -> dict[str, Any]:
        """Return the learning curve, as the attribute `learning_curve_` of estimators."""
        return curve_of(run(["job", "curve", str(self._info["id"]), "-o", "csv", *self._client._where]).out)

    def __repr__(self) -> str:
        return f"<Job {self.name}: {self.state}>"

    def _repr_html_(self) -> str:
        from ._display import table as html_table

        rows = [(key, plain(self._info[key])) for key in ("name", "state", "owner", "waiting", "error") if self._info.get(key)]
        result = self._info.get("result") or {}
        for name, value in (result.get("measures") or {}).items():
            rows.append((name, value.get("mean")))
        return html_table(rows)
