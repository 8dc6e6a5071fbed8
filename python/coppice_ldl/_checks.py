"""Checks of arguments before a command sees them."""

from __future__ import annotations

import difflib
import inspect
import re
from typing import Any, Mapping

from ._base import Estimator
from ._commands import READING
from ._process import InputError, OptionError

# Further options that say how a file or an array is read.
_FILES = (
    "categories",
    "data_format",
    "decimal",
    "delimiter",
    "drop",
    "encoding",
    "feature_columns",
    "features_variable",
    "groups",
    "header",
    "images",
    "intervals",
    "label_columns",
    "label_prefix",
    "labels_file",
    "labels_variable",
    "names",
    "row_names",
    "shape",
    "thousands",
    "tolerance",
    "values",
    "zero_based",
)

# The options of the calls that run these commands.
OPTIONS = {
    "job list": ("limit", "mine", "owner", "sort", "state"),
    "model list": ("limit",),
    "job submit": ("audit", "clip", "fold", "fold_seed", "folds", "init_from", "measures", "split", "test_fraction", "wait", *_FILES),
    "dataset import": ("wait", *READING, *_FILES),
    "experiment run": ("data", "keep_models", "no_budget", "record", "record_again", "retry_failed", "wait"),
    "experiment report": ("all_tests", "level", "no_times", "sample"),
}

_CLUSTER = dict.fromkeys(("server", "context", "token_file", "ca_file", "tls_dir"), "the client has it; give it to Client")
_PARAMETER = "give it to the estimator"
# Options of the commands that are elsewhere in the library.
ELSEWHERE: dict[str, dict[str, str]] = {
    "job list": _CLUSTER,
    "model list": _CLUSTER,
    "job submit": {
        **_CLUSTER,
        **dict.fromkeys((*READING, "set", "algorithm", "members", "steps"), _PARAMETER),
        "seed": "give random_state to the estimator",
        "data": "give X",
        "dataset": "give the name as X",
        "spec": "the estimator has what it says",
        "settings": "submit does not print settings",
    },
    "dataset import": {**_CLUSTER, "data": "give X"},
    "experiment run": {
        **dict.fromkeys(("format", "out", "level", "no_times", "sample", "all_tests"), "give it to a method of the report"),
        "figures": "use the method figures of the report",
        "dir": "give folder",
        "local": "leave out server",
        "threads": "give n_jobs",
        "yes": "give replace",
        "dry_run": "without replace=True, a changed spec is refused with the numbers of its runs",
    },
    "experiment report": {"format": "give kind", "out": "use save", "figures": "use the method figures", "local": "leave it out", "dir": "leave it out"},
}


def options(call: str, command: str, given: Mapping[str, Any]) -> None:
    """Raise OptionError if a call has an option that it does not take."""
    known = OPTIONS[command]
    for name in given:
        if name in known:
            continue
        other = ELSEWHERE[command].get(name)
        if other is None:
            close = difflib.get_close_matches(name, known, 1)
            other = f"did you mean {close[0]}?" if close else f"the options are {', '.join(sorted(known))}"
        raise OptionError(f"{call}: there is no option {name}; {other}")


def estimator(call: str, value: Any) -> Estimator:
    """Return an estimator, or raise TypeError."""
    if isinstance(value, Estimator):
        return value
    if inspect.isclass(value) and issubclass(value, Estimator):
        raise TypeError(f"{call}: {value.__name__} is a class; give an estimator: {value.__name__}()")
    raise TypeError(f"{call}: {shown(value)} is not an estimator, such as StructRF()")


def shown(value: Any) -> str:
    """Return a value and its type for a message."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:60] + '...'} ({type(value).__name__})"


def token_file(value: Any) -> None:
    """Raise InputError if a value is a token, not the path of a file. The text does not have the value."""
    if isinstance(value, str) and without_tokens(value) != value:
        raise InputError("token_file: the value looks like a token; write the token to a file that only you can read, and give its path")


def without_tokens(text: str) -> str:
    """Return a text without the secrets of tokens."""
    return re.sub(r"coppice_([0-9a-f]{16})_\w*", r"coppice_\1_SECRET", text)


__all__ = ["ELSEWHERE", "OPTIONS", "estimator", "options", "shown", "token_file", "without_tokens"]
