"""Frames of all libraries: the names and the values of their columns."""

from __future__ import annotations

import importlib
from typing import Any, Iterable, Optional, Sequence

import numpy as np

from ._errors import InputError, shown


def is_pandas(X: Any) -> bool:
    """Return True if X is a DataFrame of pandas, or of a library with its interface."""
    return hasattr(X, "iloc") and hasattr(X, "columns") and hasattr(X, "dtypes")


def known(X: Any) -> Any:
    """Return X, or a Frame if X is a frame of a library other than pandas, or a structured array of NumPy. A lazy frame is computed.

    Raises
    ------
    InputError
        If X is a frame, but the package that reads it is not installed, or does not know it, or a structured array is no table.
    """
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        return Frame(_fields(X))
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "compute"):
        return X.compute()
    return Frame(_read(X)) if _is_other(X) else X


def of(X: Any) -> Optional["Frame"]:
    """Return X as a Frame, or None if it is no frame."""
    X = known(X)
    if is_pandas(X):
        return Frame([(name, X.iloc[:, i]) for i, name in enumerate(X.columns)])
    return X if isinstance(X, Frame) else None


def names(X: Any) -> Optional[list[Any]]:
    """Return the names of the columns of a frame, or None if X is no frame."""
    X = known(X)
    if is_pandas(X):
        return list(X.columns)
    return X.names if isinstance(X, Frame) else None


def index_of(X: Any) -> Any:
    """Return the index of a frame of pandas, or None."""
    return X.index if is_pandas(X) else None


def check_output(output: Any) -> None:
    """Raise InputError if `output` is none of the libraries of `made`, or cannot be imported."""
    if output is None:
        return
    if output not in ("pandas", "polars", "pyarrow"):
        raise InputError(f'output={shown(output)}: want None, "pandas", "polars" or "pyarrow"')
    try:
        importlib.import_module(output)
    except ModuleNotFoundError as error:
        raise InputError(f"output={output!r}: {output} is not installed; run: pip install {output}") from error
    except ImportError as error:
        raise InputError(f"output={output!r}: {output} is installed, but Python cannot import it: {error}") from error


def made(output: Optional[str], values: np.ndarray, names: Iterable[Any], index: Any, called: str) -> Any:
    """Return an array as an object of another library.

    Parameters
    ----------
    output : {None, "pandas", "polars", "pyarrow"}
        None returns the array.
    values : ndarray
        One dimension becomes a Series, two become a frame.
    names : iterable
        The names of the columns. Those of pandas may be other than texts.
    index : index of pandas or None
        What an object of pandas has as its index.
    called : str
        The name of a Series.
    """
    if output is None:
        return values
    library = importlib.import_module(output)
    if values.ndim == 1:
        if output == "pandas":
            return library.Series(values, index=index, name=called)
        items = values if values.dtype.kind in "biuf" else values.tolist()
        return library.array(items) if output == "pyarrow" else library.Series(called, items)
    if output == "pandas":
        return library.DataFrame(values, index=index, columns=list(names))
    return table(output, [(name, values[:, i]) for i, name in enumerate(names)], index)


def table(output: str, columns: Iterable[tuple[Any, np.ndarray]], index: Any = None) -> Any:
    """Return columns as a frame of another library, which `check_output` knows. A frame of pandas has the index."""
    library = importlib.import_module(output)
    if output == "pandas":
        return library.DataFrame(dict(columns), index=index)
    found = {str(name): np.ascontiguousarray(one) if one.dtype.kind in "biuf" else one.tolist() for name, one in columns}
    return library.table(found) if output == "pyarrow" else library.DataFrame(found)


def texts(names: Sequence[Any]) -> list[str]:
    """Return names of columns as texts, without the white space around them. They must differ."""
    found = [str(name).strip() for name in names]
    seen: set[str] = set()
    for name in found:
        if name in seen:
            raise InputError(f"several columns have the name {name!r}; rename them")
        seen.add(name)
    return found


def _is_other(X: Any) -> bool:
    """Return True if X is a frame of a library other than pandas."""
    if isinstance(X, (Frame, np.ndarray)) or is_pandas(X) or len(getattr(X, "shape", (0, 0))) == 1:
        return False

    def has(*names: str) -> bool:
        return any(hasattr(type(X), name) for name in names)  # the attribute of a lazy frame may take long

    if has("__dataframe__", "__narwhals_dataframe__", "__narwhals_lazyframe__", "column_names"):
        return True
    if has("columns"):
        return has("dtypes", "schema", "collect")
    return has("__arrow_c_stream__") and not has("dtype", "chunks", "type")  # a column has these


def _fields(X: np.ndarray) -> list[tuple[str, Any]]:
    """Return the names and the columns of a structured array."""
    names = list(X.dtype.names or ())
    wrong = [name for name in names if X.dtype[name].shape or X.dtype[name].names]
    if X.ndim != 1 or wrong:
        what = f"the field {wrong[0]!r} has the type {X.dtype[wrong[0]]}" if wrong else f"the shape is {X.shape}"
        raise InputError(f"the structured array is not numbers in named columns: {what}; give an array of numbers")
    return [(name, X[name]) for name in names]


def _read(X: Any) -> list[tuple[str, Any]]:
    """Return the names and the columns of a frame that is not of pandas, as Series of narwhals."""
    name = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
    try:
        import narwhals as nw  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise InputError(f"{name}: the names of its columns are read with narwhals; run: pip install narwhals; or give a DataFrame of pandas") from error
    frame = nw.from_native(X, pass_through=True)
    if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
        try:
            import pyarrow.interchange  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError as error:
            raise InputError(f"{name}: its columns are read with pyarrow; run: pip install pyarrow; or give a DataFrame of pandas") from error
        try:
            table = pyarrow.table(X) if hasattr(X, "__arrow_c_stream__") else pyarrow.interchange.from_dataframe(X)
        except Exception as error:
            raise InputError(f"{name}: its columns cannot be read ({error}); give a DataFrame of pandas, or an array") from error
        frame = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return list(zip(frame.columns, frame.iter_columns()))


class Frame:
    """Columns of one length.

    Attributes
    ----------
    names : list
        The names of the columns. A frame of pandas may have other names than texts.
    shape : tuple of int
    """

    def __init__(self, columns: Sequence[tuple[Any, Any]]) -> None:
        self._columns = [column for _name, column in columns]
        self.names = [name for name, _column in columns]
        self.shape = (len(self._columns[0]) if columns else 0, len(columns))

    def __len__(self) -> int:
        return self.shape[0]

    def pick(self, positions: Sequence[int]) -> "Frame":
        """Return a frame with some of the columns."""
        return Frame([(self.names[i], self._columns[i]) for i in positions])

    def objects(self) -> np.ndarray:
        """Return the values as an array of objects. A missing value is None, NaN or NA of pandas."""
        array = np.empty(self.shape, dtype=object)
        for i, column in enumerate(self._columns):
            array[:, i] = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
        return array

    def numbers(self, called: str) -> np.ndarray:
        """Return the values as an array of numbers. A missing value is NaN.

        Raises
        ------
        InputError
            If a column has no numbers. The text names the column.
        """
        columns = [_numbers(column, self.names[i], called) for i, column in enumerate(self._columns)]
        kinds = {column.dtype for column in columns}
        kind = np.result_type(*kinds) if columns and all(one.kind in "iuf" for one in kinds) else np.dtype(np.float64)
        array = np.empty(self.shape, kind)
        for i, column in enumerate(columns):
            array[:, i] = column
        return array


def _numbers(column: Any, name: Any, called: str) -> np.ndarray:
    """Return a column as an array of numbers: integers, booleans or floats."""
    kind = column.dtype
    try:
        if isinstance(column, np.ndarray):  # of a structured array
            if kind.kind not in "biufO":
                raise TypeError("it has no numbers")
            if isinstance(column, np.ma.MaskedArray):
                return np.asarray(np.ma.filled(column.astype(np.float64), np.nan))
            return column if kind.kind in "iu" or kind in (np.float16, np.float32, np.float64) else column.astype(np.float64)
        if hasattr(column, "iloc"):  # of pandas
            if isinstance(kind, np.dtype) and kind.kind in "iuf":
                return np.asarray(column.to_numpy())
            if getattr(kind, "kind", "O") in "mMc":
                raise TypeError("it has no order of numbers")
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        import narwhals as nw  # type: ignore[import-not-found, unused-ignore]

        missing = column.null_count()
        if missing == len(column):
            return np.full(len(column), np.nan)
        if not kind.is_numeric() and kind != nw.Boolean:
            raise TypeError("it has no numbers")
        if missing or kind.is_decimal() or kind in (nw.Int128, nw.UInt128):
            column = column.cast(nw.Float64)
        return np.asarray(column.to_numpy())
    except (TypeError, ValueError) as error:
        texts = getattr(kind, "kind", "") in ("S", "U") or str(kind).partition("(")[0].lower() in ("object", "str", "string", "category", "categorical", "enum")
        advice = "encode it, for example with pandas.get_dummies" if texts else "make it a column of numbers, or leave it out"
        raise InputError(f"{called}: the column {name!r} has the type {kind}, not numbers; {advice} ({error})") from error
