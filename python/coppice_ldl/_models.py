"""Model files, and what a training writes next to a model."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from ._arrays import Files
from ._process import run


def describe(model: bytes) -> dict[str, Any]:
    """Return the output of ``coppice model show -o json`` about a model."""
    with Files() as files:
        return dict(run(["model", "show", "-o", "json", files.bytes("model", model)], files.descriptors).json())


def curve_of(text: str) -> dict[str, np.ndarray]:
    """Return the columns of a learning curve in CSV. A missing value is NaN."""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows:
        return {}
    columns = list(zip(*rows[1:])) if len(rows) > 1 else [()] * len(rows[0])
    return {name: np.asarray([float(v) if v else np.nan for v in values]) for name, values in zip(rows[0], columns)}
