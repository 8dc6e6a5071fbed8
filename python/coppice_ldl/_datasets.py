"""What `coppice_ldl.datasets` has."""

from __future__ import annotations

import difflib
import glob
import json
import os
import warnings
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from . import _arrays, _checks, _frames, _inputs
from ._arrays import Files
from ._errors import InputError, path_of, shown, typed
from ._parameters import flags, utf8
from ._process import run


@dataclass(repr=False, eq=False)
class Dataset:
    """A dataset.

    Attributes
    ----------
    X : ndarray of float32 of shape (n_samples, n_features), or a CSR matrix of SciPy if the data are mostly zeros
        Without SciPy, `X` is an ndarray.
    D : ndarray of shape (n_samples, n_labels)
        Label distributions.
    feature_names, label_names : list of str
        They are empty if the data have no names.
    row_names : ndarray of str, optional
    groups : ndarray, optional
        The group of each sample, such as a person.
    values : ndarray, optional
        The exact number of each sample of ordinal labels.
    intervals : ndarray of shape (n_samples, 2), optional
        The least and the greatest number of each sample.
    weights : ndarray, optional
        The weight of each sample.
    notes : list of str
        How the file was read.
    """

    X: Any
    D: np.ndarray
    feature_names: list[str] = field(default_factory=list)
    label_names: list[str] = field(default_factory=list)
    row_names: Optional[np.ndarray] = None
    groups: Optional[np.ndarray] = None
    values: Optional[np.ndarray] = None
    intervals: Optional[np.ndarray] = None
    weights: Optional[np.ndarray] = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        label_columns: Any,
        *,
        feature_columns: Optional[Sequence[Any]] = None,
        row_names: Any = None,
        groups: Any = None,
        values: Any = None,
        **options: Any,
    ) -> "Dataset":
        """Return the dataset that a frame has.

        Parameters
        ----------
        frame : DataFrame
            A frame of pandas, polars, pyarrow or another library that `fit` takes.
        label_columns : str or list of str
            The columns with the labels: one for each label, or a single one with ``labels="class"`` or ``labels="age"``.
        feature_columns : list of str, optional
            The columns with the features, which are numbers (default: all other columns).
        row_names, groups, values : str, optional
            The columns with the name, the group and the exact number of each sample. An index of pandas that is more than a count
            from 0 has the names of samples, unless `row_names` is given.
        **options
            Other options of `load` that apply to arrays: `labels`, `sigma`, `range`, `bounds`, `missing`, `normalize`, `tolerance`.

        Returns
        -------
        Dataset

        Raises
        ------
        InputError
            If the frame has no such column, or a column of features has no numbers, or the labels are not valid.
        """
        _checks.options("from_frame", "dataset convert", options, ("frame", "label_columns", "feature_columns", "row_names", "groups", "values"))
        frame = _frames.known(frame)
        table = _frames.of(frame)
        if table is None:
            raise InputError(f"from_frame: {typed(frame)} is not a frame; give a DataFrame of pandas or polars, or a Table of pyarrow")

        def places(given: Any) -> list[int]:
            names = list(given) if isinstance(given, (list, tuple, np.ndarray)) else [given]
            return [_place(table.names, name) for name in names]

        of_labels = places(label_columns)
        other = {name: _place(table.names, one) for name, one in (("row_names", row_names), ("groups", groups), ("values", values)) if one is not None}
        known = {name: table.pick([i]) for name, i in other.items()}
        rest = [i for i in range(len(table.names)) if i not in {*of_labels, *other.values()}]
        of_features = rest if feature_columns is None else places(feature_columns)
        for called, one in (("label_columns", of_labels), ("feature_columns", of_features)):
            if not one:
                raise InputError(f"from_frame: {called} names no column; the columns are {shown(table.names)}")
        both = [table.names[i] for i in of_features if i in of_labels]
        if both:
            raise InputError(f"from_frame: the column {both[0]!r} is in feature_columns and in label_columns; leave it out of one of them")
        labels = options.get("labels", "distributions")
        X, D = table.pick(of_features), table.pick(of_labels)
        arrays = _inputs.dataset(
            X,
            D.objects()[:, 0] if labels == "class" and len(of_labels) == 1 else D,
            labels,
            "from_frame",
            groups=np.asarray(known["groups"].objects()[:, 0].tolist()) if "groups" in known else None,
            values=known["values"].numbers("values")[:, 0] if "values" in known else None,
        )
        index = _frames.index_of(frame)
        if "row_names" in known:
            arrays["row_names"] = known["row_names"].objects()[:, 0].astype(str)
        elif index is not None and list(index) != list(range(len(index))):
            arrays["row_names"] = np.asarray([str(one) for one in index])
        with Files() as files:
            return _converted(files, files.data(arrays), {**options, **_inputs.columns_of(arrays)})

    def to_frame(self, output: str = "pandas") -> Any:
        """Return the dataset as one frame: features, labels, and the columns ``group`` and ``value`` if the dataset has them.

        The names of samples are the index of a frame of pandas, and the first column ``row_name`` of other frames. `from_frame` reads
        the frame again. Intervals are not in it.

        Parameters
        ----------
        output : {"pandas", "polars", "pyarrow"}

        Raises
        ------
        InputError
            If a feature and a label have the same name.
        """
        _frames.check_output(output)
        columns = [*zip(self._names_of("feature"), self._dense().T), *zip(self._names_of("label"), self.D.T)]
        columns += [(name, array) for name, array in (("group", self.groups), ("value", self.values)) if array is not None]
        if self.row_names is not None and output != "pandas":
            columns.insert(0, ("row_name", self.row_names))
        _frames.texts([name for name, _ in columns])
        return _frames.table(output, columns, self.row_names)

    def frame(self, output: str = "pandas") -> Any:
        """Return the features as a frame of pandas, polars or pyarrow. A frame of pandas has the names of samples as its index."""
        _frames.check_output(output)
        return _frames.made(output, self._dense(), self._names_of("feature"), self.row_names, "")

    def label_frame(self, output: str = "pandas") -> Any:
        """Return the label distributions as a frame of pandas, polars or pyarrow. `fit` takes the names of labels from it."""
        _frames.check_output(output)
        return _frames.made(output, self.D, self._names_of("label"), self.row_names, "")

    def _dense(self) -> np.ndarray:
        array: np.ndarray = self.X.toarray() if _arrays.is_sparse(self.X) else self.X.reshape(len(self.X), -1)
        return array

    def _names_of(self, kind: str) -> list[str]:
        known, count = (self.feature_names, self._dense().shape[1]) if kind == "feature" else (self.label_names, self.D.shape[1])
        return known or [f"{kind}_{i}" for i in range(count)]

    def __repr__(self) -> str:
        shapes = [f"{name} {' x '.join(str(n) for n in array.shape)}" for name, array in (("X", self.X), ("D", self.D))]
        return f"<Dataset: {', '.join(shapes)}>"

    def _repr_html_(self) -> str:
        from ._display import table

        rows: list[tuple[str, Any]] = [
            ("samples", self.X.shape[0]),
            ("features", self.X.shape[1]),
            ("labels", ", ".join(self.label_names[:20]) or self.D.shape[1]),
        ]
        return table([*rows, *(("note", note) for note in self.notes)])


def load(path: Union[str, "os.PathLike[str]", Mapping[str, Any]], **options: Any) -> Dataset:
    """Read a data file.

    Parameters
    ----------
    path : str, path or dict
        A .mat, .npz, .npy, .csv, .tsv, .libsvm, .arff or .parquet file, text files also with .gz, or a folder of .parquet
        files. A dict has .npy files by name, such as
        ``{"features": "X.npy", "labels": "D.npy"}``.
    **options
        The flags of ``coppice dataset import``, such as ``label_columns=["a", "b"]``, ``labels="age"``, ``sigma=2``,
        ``range=(0, 69)``, ``missing="mean"`` or ``groups="person"``.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the file or an option is not valid. The text names the row and the column.
    TypeError
        If `path` is neither a path nor a dict, such as an open file.
    """
    _checks.options("load", "dataset convert", options)
    where = json.dumps({name: _path(one) for name, one in path.items()}) if isinstance(path, Mapping) else _path(path)
    with Files() as files:
        return _converted(files, where, options)


def _converted(files: Files, where: str, options: Mapping[str, Any]) -> Dataset:
    """Return the dataset that the value of ``--data`` and the options of ``coppice dataset convert`` name."""
    out = files.empty("dataset")
    result = run(["dataset", "convert", "-o", "json", "--data", where, "--out", out, *flags(options)], files.descriptors)
    found = _dataset(files.read_arrays(out), result.json().get("notes") or [])
    if options.get("missing") in ("mean", "median") and bool(np.isnan(found.X.data if _arrays.is_sparse(found.X) else found.X).any()):
        text = f'X has NaN where values are missing: the {options["missing"]} is of the training samples, so give missing="{options["missing"]}" to the estimator, too'
        warnings.warn(text, stacklevel=3)
    return found


def fetch(name: str, to: Union[str, "os.PathLike[str]"] = ".", *, from_: Optional[Union[str, "os.PathLike[str]"]] = None, sha256: Optional[str] = None, **options: Any) -> Dataset:
    """Fetch a public dataset, unless its files are there, and load it.

    ``coppice dataset fetch --list`` shows the names, and docs/guides/get-data.md describes the list. The variables ``HTTPS_PROXY``,
    ``HTTP_PROXY`` and ``NO_PROXY`` name proxies.

    Parameters
    ----------
    name : str
        A dataset of the list, such as ``SJAFFE``.
    to : str or path
        Folder for the files. It is made if its parent exists.
    from_ : str or path, optional
        List of datasets in place of the built-in list.
    sha256 : str, optional
        SHA-256 of the data file, for a dataset without one in the list.
    **options
        Options of `load`, in place of the flags of the list.

    Returns
    -------
    Dataset
        The end of its notes has the licence and the citation.

    Raises
    ------
    CoppiceError
        If the list has no such dataset, or its file cannot be fetched, or has another SHA-256. No part of a file remains, and a file that
        was there is not changed.
    """
    if not isinstance(name, str):
        raise InputError(f"fetch: name has the type {type(name).__name__}; want the name of a dataset")
    _checks.options("fetch", "dataset convert", options, ("name", "to", "from_", "sha256"))
    folder = os.path.abspath(path_of("fetch", to, "a folder"))
    given = [f"--to={utf8(folder)}", *([f"--from={utf8(os.path.abspath(path_of('fetch', from_, 'a list')))}"] if from_ is not None else [])]
    (found,) = run(["dataset", "fetch", "-o", "json", *given, *([f"--sha256={sha256}"] if sha256 is not None else []), "--", name]).json()
    words = found.get("read", "").split()
    read: dict[str, Any] = {}
    while words:
        flag = words.pop(0)[2:].replace("-", "_")
        read[flag] = True if flag in ("normalize", "zero_based") else words.pop(0)
    data = load(found["data"], **{**read, **options})
    data.notes += [f"{key}: {found[key]}" for key in ("licence", "citation") if found.get(key)]
    return data


def _place(names: Sequence[Any], name: Any) -> int:
    """Return the position of a column."""
    if name in names:
        return names.index(name)
    close = difflib.get_close_matches(str(name), [str(one) for one in names], 1)
    raise InputError(f"from_frame: the frame has no column {name!r}; " + (f"did you mean {close[0]!r}?" if close else f"the columns are {shown(list(names))}"))


def _path(path: Union[str, "os.PathLike[str]"]) -> str:
    """Return the absolute path of a file that can be read twice."""
    if not isinstance(path, bytes):
        path = path_of("load", path, "a data file")
    if "://" in os.fsdecode(path):
        raise InputError(f"{os.fsdecode(path)}: a URL is not read; download the file, and give its path")
    where = os.path.abspath(os.fsdecode(path))
    if where.startswith(("/dev/", "/proc/")) or os.fsdecode(path) == "-":
        raise InputError(f"{os.fsdecode(path)}: a pipe or a device cannot be read twice; write its data to a file")
    if not os.path.exists(where):
        near = sorted(name for name in glob.glob(glob.escape(where) + ".*"))
        if near:
            raise InputError(f"{os.fsdecode(path)}: no such file; there is {os.path.basename(near[0])}")
    return utf8(where)


def generate(kind: str = "artificial", rows: Optional[int] = None, seed: int = 1, **options: Any) -> Dataset:
    """Generate a dataset.

    Parameters
    ----------
    kind : str
        ``artificial``, ``random``, ``smooth``, ``leaves``, ``interactions``, ``sparse``, ``noisy``, ``ordered`` or ``ages``.
    rows : int, optional
        Number of samples.
    seed : int
    **options
        Other flags of ``coppice dataset generate``, such as ``features=50`` of the kind ``random``.

    Returns
    -------
    Dataset
        Its numbers are rounded to float32, and `X` is an ndarray.
    """
    _checks.options("generate", "dataset generate", options, ("kind", "rows", "seed"))
    if kind == "textures":
        raise InputError("kind 'textures' writes images to a folder; use coppice dataset generate")
    with Files() as files:
        out = files.empty("dataset")
        given = {"kind": kind, "seed": seed, **({"rows": rows} if rows is not None else {}), **options}
        run(["dataset", "generate", "-o", "json", "--out", out, "--format", "npz", *flags(given)], files.descriptors)
        arrays = files.read_arrays(out)
    return _dataset(arrays, [])


def _dataset(arrays: dict[str, np.ndarray], notes: list[str]) -> Dataset:
    if "features" in arrays:
        X: Any = arrays["features"]
    else:
        parts = [arrays[f"features_{part}"] for part in ("data", "indices", "indptr")]
        shape = tuple(int(n) for n in arrays["features_shape"])
        try:
            from scipy.sparse import csr_matrix  # type: ignore[import-not-found, import-untyped, unused-ignore]

            X = csr_matrix(tuple(parts), shape=shape)
        except ImportError:
            X = np.zeros(shape, dtype=parts[0].dtype)
            X[np.repeat(np.arange(shape[0]), np.diff(parts[2])), parts[1]] = parts[0]

    def names(key: str) -> list[str]:
        return [str(name) for name in arrays.get(key, ())]

    labels = arrays["labels"]
    return Dataset(
        X,
        labels if labels.ndim == 2 else labels.reshape(-1, 1),
        names("feature_names"),
        names("label_names"),
        arrays.get("row_names"),
        arrays.get("group"),
        arrays.get("value"),
        np.column_stack([arrays["least"], arrays["most"]]) if "least" in arrays else None,
        arrays.get("weight"),
        notes,
    )
