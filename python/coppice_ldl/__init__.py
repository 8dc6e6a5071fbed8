"""Label distribution learning with Coppice.

Each algorithm is an estimator in the conventions of scikit-learn::

    from coppice_ldl import StructRF
    model = StructRF().fit(X, D)
    model.predict(X)

``fit(X, D, server="10.0.0.1:7100")`` trains the same model on a cluster.
"""

from typing import Any as _Any  # completion lists names without an underscore

from . import datasets, estimators, metrics
from ._base import Estimator
from ._binary import binary
from ._build import VERSION as __version__
from ._client import Client, Job
from ._enhance import enhance
from ._errors import (
    ConflictError,
    CoppiceError,
    InputError,
    JobTimeoutError,
    NotFittedError,
    NotFoundError,
    OptionError,
    ProcessError,
    RefusedError,
    UnavailableError,
)
from ._experiment import Report, experiment
from ._load import load
from ._process import close
from .estimators import *  # noqa: F401,F403
from .estimators import ALGORITHMS

__all__ = [
    "Client",
    "ConflictError",
    "CoppiceError",
    "Estimator",
    "InputError",
    "Job",
    "JobTimeoutError",
    "NotFittedError",
    "NotFoundError",
    "OptionError",
    "ProcessError",
    "RefusedError",
    "Report",
    "UnavailableError",
    "__version__",
    "binary",
    "close",
    "datasets",
    "enhance",
    "experiment",
    "load",
    "metrics",
]
__all__ += estimators.__all__


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> _Any:
    def plain(text: str) -> str:
        return text.replace("_", "").replace("-", "").lower()

    meant = [one for one in __all__ if plain(one) == plain(name)]
    meant += [kind.__name__ for algorithm, kind in ALGORITHMS.items() if plain(algorithm) == plain(name) and kind.__name__ not in meant]
    raise AttributeError(f"module 'coppice_ldl' has no attribute {name!r}" + (f"; did you mean {meant[0]!r}?" if meant else ""))
