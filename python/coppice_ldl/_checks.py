"""Checks of arguments before a command sees them."""

from __future__ import annotations

import difflib
import inspect
import re
from typing import Any, Mapping

from ._base import Estimator
from ._options import ELSEWHERE, OPTIONS
from ._process import InputError, OptionError

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
