"""Data in files without a name. Their descriptors are sent to the process."""

from __future__ import annotations

import builtins
import fcntl
import io
import json
import mmap
import os
import tempfile
import zipfile
from typing import Any, Iterator, Mapping, Optional, Sequence

import numpy as np
from numpy.lib import format as npy

from . import _frames
from ._errors import InputError

# From linux/fcntl.h. Python has the names since 3.9 only where the C library has them.
_F_ADD_SEALS = getattr(fcntl, "F_ADD_SEALS", 1033)
_SEALS = 0x2 | 0x4 | 0x8  # no shrinking, growing or writing
_PIECE = 1 << 30  # the largest number of bytes that one write takes on all systems


def nameless(called: str) -> int:
    """Return the descriptor of a new file without a name. On Linux it is in memory, and needs no folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(called, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fd, path = tempfile.mkstemp(prefix="coppice-")
    os.unlink(path)
    return fd


class Files:
    """Files of a call. As a context manager, it closes them."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int]] = []

    def __enter__(self) -> "Files":
        return self

    def __exit__(self, *_: object) -> None:
        for _name, fd in self._open:
            os.close(fd)
        self._open.clear()

    @property
    def descriptors(self) -> Sequence[tuple[str, int]]:
        """Names and descriptors, for `run`."""
        return self._open

    def empty(self, name: str) -> str:
        """Make a file for output, and return its path in the process."""
        fd = nameless(name)
        self._open.append((name, fd))
        return f"/dev/fd/@{len(self._open) - 1}"

    def bytes(self, name: str, data: Any) -> str:
        """Write bytes to a file, and return its path in the process."""
        path = self.empty(name)
        self._write(data)
        self._seal()
        return path

    def text(self, name: str, value: str) -> str:
        """Write a text to a file, and return its path in the process."""
        return self.bytes(name, value.encode())

    def array(self, name: str, values: np.ndarray) -> str:
        """Write an array in the format of .npy, and return its path in the process.

        An array in C order is written as it is. An array in another order is copied once.
        """
        path = self.empty(name)
        header = io.BytesIO()
        values = np.asarray(values)
        if not values.flags.c_contiguous:
            values = np.ascontiguousarray(values)
        npy.write_array_header_1_0(header, npy.header_data_from_array_1_0(values))
        self._write(header.getbuffer())
        if values.size:
            self._write(values.reshape(-1).view(np.uint8) if values.dtype.kind != "U" else values.tobytes())
        self._seal()
        return path

    def data(self, arrays: Mapping[str, np.ndarray]) -> str:
        """Write the arrays of a dataset, and return the value of ``--data``."""
        return json.dumps({name: self.array(name, values) for name, values in arrays.items()})

    def read(self, path: str) -> builtins.bytes:
        """Return the bytes of a file that the process has written."""
        fd = self._open[int(path.rpartition("@")[2])][1]
        size = os.fstat(fd).st_size
        if size == 0:
            return b""
        with mmap.mmap(fd, size, prot=mmap.PROT_READ) as view:
            return view[:]

    def read_arrays(self, path: str) -> dict[str, np.ndarray]:
        """Return the arrays of an .npz file that the process has written."""
        return unpack(self.read(path))

    def _write(self, data: Any) -> None:
        fd = self._open[-1][1]
        view = memoryview(data).cast("B")
        while view:
            view = view[os.write(fd, view[:_PIECE]) :]

    def _seal(self) -> None:
        fd = self._open[-1][1]
        if hasattr(os, "memfd_create"):
            fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
        else:
            os.lseek(fd, 0, os.SEEK_SET)


def unpack(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            with archive.open(name) as entry:
                arrays[name[: -len(".npy")]] = npy.read_array(entry, allow_pickle=False)
    return arrays


def is_sparse(X: Any) -> bool:
    """Return True if X is a sparse matrix or array of SciPy."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def names_of(X: Any) -> Optional[list[str]]:
    """Return the names of the columns of a frame if all are texts, and otherwise None."""
    names = _frames.names(X)
    if names is None:
        return None
    texts = [isinstance(name, str) for name in names]
    if not any(texts):
        return None
    if not all(texts):
        raise TypeError("some column names are texts and others are not; convert them with X.columns = X.columns.astype(str)")
    return _frames.texts(names)


def label_names_of(D: Any) -> Optional[list[str]]:
    """Return the names of the columns of a frame, or None if they are the numbers from 0."""
    names = _frames.names(D)
    return None if names is None or names == list(range(len(names))) else _frames.texts(names)


def sparse_arrays(X: Any, name: str = "features") -> dict[str, np.ndarray]:
    """Return the four arrays of a sparse matrix in CSR order. X is not changed."""
    csr = X.tocsr()
    used = int(csr.indptr[-1])
    columns, starts = csr.indices[:used], csr.indptr[1:-1]
    rising = columns[1:] > columns[:-1]
    rising[starts[(starts > 0) & (starts < used)] - 1] = True  # where a row begins
    if not rising.all():  # SciPy's has_canonical_format is a flag, which a change of indices does not reset
        csr = csr.copy()
        csr.has_sorted_indices = csr.has_canonical_format = False
        csr.sum_duplicates()
        used = int(csr.indptr[-1])
    return {
        f"{name}_data": numbers(np.asarray(csr.data)[:used], name),
        f"{name}_indices": np.asarray(csr.indices)[:used],
        f"{name}_indptr": np.asarray(csr.indptr),
        f"{name}_shape": np.asarray(csr.shape, dtype=np.int64),
    }


def array_of(X: Any, name: str) -> np.ndarray:
    """Return X as an array. An InputError says what a dict, a generator or rows of different lengths need."""
    if isinstance(X, Mapping):
        raise InputError(f"{name} has the type {type(X).__name__}; give an array" + (f", or pandas.DataFrame({name})" if name == "X" else ""))
    if isinstance(X, Iterator):
        raise InputError(f"{name} has the type {type(X).__name__}; give list({name})")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{name}: the rows have different lengths ({error})") from error
    if array.dtype.kind == "O" and array.ndim == 1 and array.size and isinstance(array[0], (list, tuple, np.ndarray)):
        raise InputError(f"{name}: the elements have the type {type(array[0]).__name__} and are no numbers; give numpy.stack({name})")
    return array


def numbers(X: Any, name: str) -> np.ndarray:
    """Return X as an array of numbers that the process reads: booleans, integers and floats of up to 64 bits.

    A masked element and a missing value of pandas become NaN.
    """
    X = _frames.known(X)
    if _frames.is_pandas(X) and all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in X.dtypes):
        return np.asarray(X.to_numpy())
    frame = _frames.of(X)
    if frame is not None:
        return frame.numbers(name)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    array = array_of(X, name)
    if array.dtype.kind == "c":
        raise InputError(f"{name}: Complex data not supported")
    if array.dtype.kind in "mMV":
        raise InputError(f"{name}: the type {array.dtype} is not numbers; convert it to float")
    if array.dtype.kind in "biu" or array.dtype in (np.float16, np.float32, np.float64):
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        if array.dtype.kind == "O":
            for place in np.ndindex(array.shape):
                try:
                    float(array[place])
                except (TypeError, ValueError) as one:
                    where = ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), place))
                    kind = TypeError if isinstance(one, TypeError) else InputError
                    raise kind(": ".join(part for part in (name, where, str(one)) if part)) from error
        raise InputError(f"{name}: the type {array.dtype} cannot be converted to numbers: {error}") from error
