"""Exceptions, and what a failed command wrote as an exception."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any, Iterator, Sequence

from ._texts import plain, text_of


class CoppiceError(Exception):
    """A command failed. The text is the text of the command line, with arguments in place of flags.

    Attributes
    ----------
    kind : str
        ``usage``, ``data``, ``not_found``, ``refused``, ``conflict``, ``unavailable``, ``timeout``, ``orphans``, ``interrupted`` or ``failed``.
    mistakes : list of str
        What is wrong with the spec of an experiment, if that is more than one thing.
    """

    def __init__(self, message: str, kind: str = "failed", mistakes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.mistakes = list(mistakes)


class InputError(CoppiceError, ValueError):
    """Data, a parameter or another argument is not valid."""

    def __init__(self, message: str, kind: str = "usage", mistakes: Sequence[str] = ()) -> None:
        super().__init__(message, kind, mistakes)


class OptionError(InputError, TypeError):
    """A function does not have the keyword argument."""


class NotFoundError(CoppiceError, LookupError):
    """A file, a job, a model or something else does not exist."""


class UnavailableError(CoppiceError, ConnectionError):
    """The cluster does not answer."""


class JobTimeoutError(CoppiceError, TimeoutError):
    """A job has not ended in time."""


class RefusedError(CoppiceError, PermissionError):
    """The cluster refuses a request, for example because the role does not have the right."""


class ConflictError(CoppiceError):
    """A request conflicts with the state of the cluster, for example because a name is in use."""


class ProcessError(CoppiceError, RuntimeError):
    """The binary is missing, has another version, or has ended."""


class NotFittedError(ValueError, AttributeError):
    """An estimator is used before it is fitted."""


@contextlib.contextmanager
def within(where: str) -> Iterator[None]:
    """Put the place of a mistake before the text of an InputError or a TypeError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}", error.kind, error.mistakes) from error.__cause__
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from error.__cause__


def shown(value: Any) -> str:
    """Return a value for a message, in one line. A long value is cut."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 100 else text[:100] + "..."


def typed(value: Any) -> str:
    """Return a value with its type for a message."""
    return f"{shown(value)} ({type(value).__name__})"


def path_of(call: str, path: Any, what: str) -> Any:
    """Return an argument of `call` that must be the path of a file or a folder, as a text.

    Raises
    ------
    TypeError
        If it is neither a text nor a path, such as an open file.
    InputError
        If it is empty.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{call}: want the path of {what}, got {typed(path)}")
    if not os.fspath(path):
        raise InputError(f"{call}: the path is empty; give the path of {what}")
    return os.fspath(path)


def not_fitted(estimator: Any) -> Exception:
    """Return the error about an estimator that is not fitted. If scikit-learn is imported, it is scikit-learn's error too."""
    message = f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
    kind: Any = NotFittedError
    if "sklearn" in sys.modules:
        from sklearn import exceptions  # type: ignore[import-not-found, import-untyped, unused-ignore]

        kind = type("NotFittedError", (NotFittedError, exceptions.NotFittedError), {})
    error: Exception = kind(message)
    return error


def failure(notes: str, code: int) -> Exception:
    """Return the exception for the last line that a command wrote, a JSON object."""
    said: dict[str, Any] = {}
    for line in reversed(notes.strip().splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "error" in value:
            said = value
            break
    message = plain(said.get("error") or "") or notes.strip() or f"the command ended with exit code {code}"
    kind = said.get("kind", "failed")
    if said.get("form"):
        message = text_of(said["form"]["text"])
    mistakes = [plain(text) for text in said.get("mistakes", [])]
    for i, form in enumerate(said.get("mistake_forms", [])):
        if form:
            mistakes[i] = text_of(form["text"])
    if mistakes:
        message = "\n".join([message + ":", *mistakes])
    classes = {
        "usage": InputError,
        "not_found": NotFoundError,
        "refused": RefusedError,
        "conflict": ConflictError,
        "unavailable": UnavailableError,
        "data": InputError,
        "timeout": JobTimeoutError,
    }
    return classes.get(kind, CoppiceError)(message, kind, mistakes)
