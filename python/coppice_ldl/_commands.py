"""Command lines from keyword arguments, and tables from their output."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from ._process import InputError


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return the flags of options: label_columns=["a", "b"] is ``--label-columns=a,b``. None and False are left out."""
    found = []
    for name, value in options.items():
        if name == "header" and isinstance(value, bool):
            value = "yes" if value else "no"
        if value is None or value is False:
            continue
        if name in ("help", "help_all", "version", "config", "output"):
            raise InputError(f"{name}={value!r}: the library decides this flag; leave it out")
        found.append(f"--{name.replace('_', '-')}={named_text(name, value)}")  # a value may begin with -
    return found


def named_text(name: str, value: Any) -> str:
    """Return the value of a flag or of a hyperparameter as the command line takes it: the shape (1, 8, 8) is 1x8x8."""
    if name == "range" and not isinstance(value, str):
        bounds = list(value) if isinstance(value, (tuple, list, np.ndarray)) else []
        if len(bounds) != 2 or not all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in bounds):
            raise InputError(f"range={value!r}: want two whole numbers, such as (0, 69)")
        if bounds[0] >= bounds[1]:
            raise InputError(f"range={value!r}: want the lower number first, such as (0, 69)")
        return f"{bounds[0]}:{bounds[1]}"
    if name == "wait" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value}s"
    if name == "shape" and isinstance(value, (tuple, list, np.ndarray)):
        return "x".join(text_of(one) for one in value)
    return text_of(value)


def text_of(value: Any) -> str:
    """Return a value as the command line takes it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.generic):
        value = value.item()
    elif hasattr(value, "tolist"):  # an array, or an index of pandas
        value = value.tolist()
    elif isinstance(value, range):
        value = list(value)
    if isinstance(value, (list, tuple)):
        texts = [text_of(one) for one in value]
        for one in texts:
            if "," in one:
                raise InputError(f"{one!r} has a comma, which separates the items of a list; rename it")
        return ",".join(texts)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if not isinstance(value, (str, int, float)):
        raise InputError(f"{value!r} has the type {type(value).__name__}; want a text, a number or a list of them")
    text = repr(value) if isinstance(value, float) else str(value)
    if "/dev/fd/@" in text or "\0" in text:
        raise InputError(f"{text!r} is not a possible value")
    return text


def cluster_flags(
    server: Optional[str] = None,
    context: Optional[str] = None,
    token_file: Optional[str] = None,
    ca_file: Optional[str] = None,
    tls_dir: Optional[str] = None,
) -> list[str]:
    """Return the flags that name a cluster. Without any, the list is empty."""
    return flags({"server": server, "context": context, "token_file": token_file, "ca_file": ca_file, "tls_dir": tls_dir})


def is_default(value: Any) -> bool:
    """Return True if a parameter of all estimators has its default."""
    return value is None or isinstance(value, (bool, np.bool_)) and not value or isinstance(value, str) and value == "distributions"


def threads(n_jobs: Optional[int]) -> list[str]:
    """Return the flag for a number of threads. None and -1 stand for all processors, -2 for all but one."""
    if n_jobs is None or isinstance(n_jobs, (int, np.integer)) and n_jobs == -1:
        return []
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r}: want a number of threads from 1; None or -1 for all processors; -2 for all but one")
    if n_jobs > 1024:
        raise InputError(f"n_jobs={n_jobs!r}: at most 1024 threads are possible")
    if n_jobs < 0:
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        n_jobs = max(1, allowed + 1 + int(n_jobs))
    return ["--threads", str(int(n_jobs))]


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a DataFrame, or as a list of dicts without pandas. Nested keys are joined by points."""
    try:
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return [dict(row) for row in rows]
    return pandas.json_normalize([dict(row) for row in rows])
