"""Estimators from model files, and from models of a cluster."""

from __future__ import annotations

import os
from typing import Any, Sequence

from ._arrays import Files
from ._base import Estimator
from ._classes import is_classifier, ordered
from ._errors import InputError, path_of
from ._models import describe
from ._options import COMMON, READING, argument_of
from ._parameters import value_of
from ._process import run
from .estimators import ALGORITHMS


def load(model: Any) -> Estimator:
    """Return a fitted estimator from a model file of ``coppice train --model-out``.

    Parameters
    ----------
    model : str, path or bytes
        The path of the file, or its contents.

    Returns
    -------
    Estimator
        The model decides its class and its hyperparameters.

    Raises
    ------
    TypeError
        If `model` is none of these, such as an open file.
    InputError
        If the path is empty.
    OSError
        If the file cannot be read.
    CoppiceError
        If the file is no model, or this version cannot read it. The text says which version reads it.
    """
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        if 0 < len(data) < 1024 and b"\0" not in data and os.path.exists(data):
            raise InputError(f"{data!r} is a path in bytes, but bytes are the contents of a model file; give the path as a text")
    elif isinstance(model, str) and "://" in model:
        raise InputError(f"{model}: a URL is not read; download the file, and give its path")
    else:
        with open(path_of("load", model, "a model file, or its contents in bytes"), "rb") as file:
            data = file.read()
    shown = describe(data)
    job = shown["job"]
    estimator: Estimator = ALGORITHMS[job["algorithm"]](random_state=job.get("seed"))
    for setting, value in job["settings"].items():
        name = argument_of(setting)
        if name in estimator._parameters() and name not in COMMON:
            setattr(estimator, name, value_of(value, estimator._forms.get(name, ())))
    reading = shown.get("reading") or {}
    for name in READING:
        if name == "range" and reading.get(name):
            low, high = reading[name].split(":")
            estimator.range = (int(low), int(high))
        elif name == "bounds" and reading.get(name):
            pairs = [(float(low), float(high)) for low, _, high in (pair.partition(":") for pair in reading[name])]
            estimator.bounds = pairs[0] if len(pairs) == 1 else pairs
        elif reading.get(name):
            setattr(estimator, name, reading[name])
    estimator.settings_ = {argument_of(name): value_of(text) for name, text in job["settings"].items()}
    estimator._adopt(data, shown)
    if is_classifier(estimator):
        estimator.classes_, estimator._class_columns = ordered(None, estimator.label_names_)
    return estimator


def download(name: str, where: Sequence[str]) -> Estimator:
    """Return a model of a cluster, which the flags of `where` name, as a fitted estimator."""
    with Files() as files:
        out = files.empty("model")
        run(["model", "download", "--out", out, "-o", "json", *where, "--", name], files.descriptors)
        return load(files.read(out))
