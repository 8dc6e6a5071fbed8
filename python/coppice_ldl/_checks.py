"""Checks of arguments before a command sees them."""

from __future__ import annotations

import difflib
import inspect
from typing import Any, Mapping, Sequence

from ._base import Estimator
from ._errors import OptionError, typed
from ._options import ELSEWHERE, OPTIONS


def options(call: str, command: str, given: Mapping[str, Any], own: Sequence[str] = ()) -> None:
    """Raise OptionError if a call has an option that it does not take. `own` are the parameters that the call names itself."""
    known = [*OPTIONS[command], *own]
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
    raise TypeError(f"{call}: {typed(value)} is not an estimator, such as StructRF(), or an object with the methods fit and predict")
