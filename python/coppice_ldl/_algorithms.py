"""The classes of the algorithms, for modules that the classes need."""

from __future__ import annotations

from typing import Any, Mapping, Protocol, Sequence


class Parameters(Protocol):
    """What is read of an estimator to make the flags of a command."""

    _predicts: str
    _forms: Mapping[str, Sequence[str]]
    labels: Any
    sigma: Any
    range: Any
    bounds: Any
    missing: Any
    normalize: Any

    @classmethod
    def _parameters(cls) -> list[str]: ...


CLASSES: dict[str, type[Parameters]] = {}  # by algorithm; each class adds itself
