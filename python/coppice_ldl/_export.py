"""Models outside of Coppice: exports, model cards and verification."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Optional, Sequence

from . import _inputs
from ._arrays import Files
from ._errors import CoppiceError, InputError, path_of
from ._parameters import cluster_flags, flags, threads
from ._process import run

FORMATS = ("onnx", "npz", "json")


def export(model: bytes, path: Any, format: Optional[str], card: Any, options: dict[str, Optional[str]]) -> dict[str, Any]:
    """Write an exported model and its card for `Estimator.export`."""
    where = path_of("export", path, "a file")
    kind = format or os.path.splitext(where)[1].lower()[1:]
    if kind not in FORMATS:
        raise InputError(f"format={kind!r}: want one of {', '.join(FORMATS)}, or a path that ends in one of them")
    texts: dict[str, bytes] = {}
    named = os.path.basename(where) if where.lower().endswith("." + kind) else f"model.{kind}"
    options = {"card_name": pathlib.Path(where).stem, "exported": named, **{name: value for name, value in options.items() if value is not None}}
    if card is not False:
        stem = os.path.splitext(where)[0] + ".card.md" if card is True else path_of("export", card, "the card")
        if not stem.lower().endswith(".md"):
            raise InputError(f"card={stem!r}: the card is written as Markdown, so the name must end in .md")
        texts[stem] = card_of(model, "md", options).encode()
        texts[stem[: -len(".md")] + ".json"] = (json.dumps(card_of(model, "json", options), indent=2, ensure_ascii=False) + "\n").encode()
    if where in texts:
        raise InputError(f"card={where!r}: the model is written to this file; give another name")
    with Files() as files:
        out = files.empty("export")
        args = ["model", "export", "-o", "json", "--format", kind, "--out", out, files.bytes("model", model)]
        found = dict(run(args, files.descriptors).json())
        texts = {where: files.read(out), **texts}
    for name, text in texts.items():
        _write(name, text)
    return {**found, "model": options["card_name"], "out": where, "cards": [name for name in texts if name != where]}


def _write(path: str, text: bytes) -> None:
    """Write a whole file, or nothing."""
    part = f"{path}.{os.getpid()}.tmp"
    try:
        with open(part, "wb") as file:
            file.write(text)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def card_of(model: bytes, format: str, options: dict[str, Optional[str]]) -> Any:
    """Return the card of a model: Markdown, or a dict with the format "json"."""
    if format not in ("md", "json"):
        raise InputError(f"format={format!r}: want 'md' or 'json'")
    with Files() as files:
        args = ["model", "card", "--format", format, *flags({name: value for name, value in options.items() if value is not None})]
        text = run([*args, files.bytes("model", model)], files.descriptors).out
    return json.loads(text) if format == "json" else text


def verify(estimator: Any, data: dict[str, Any], own: Optional[dict[str, Any]], only_data: bool, init_from: Any, fold_seed: Optional[int], where: Sequence[Optional[str]]) -> dict[str, Any]:
    """Verify the model of an estimator for `Estimator.verify`. `own` are the arrays of the validation samples."""
    lines: list[str] = []
    with Files() as files:
        args = ["model", "verify", "-o", "json", files.bytes("model", estimator.model_), "--data", files.data(data), *flags(_inputs.columns_of(data))]
        if own is not None:
            args += ["--validation", files.data(own)]
        cluster = cluster_flags(*where)
        args += [*threads(estimator.n_jobs), *(cluster or ["--local"])]
        if only_data:
            args.append("--only-data")
        if init_from is not None:
            args += ["--init-from", os.path.abspath(path_of("verify", init_from, "the file of initial weights"))]
        if fold_seed is not None:
            args += flags({"fold_seed": fold_seed})
        try:
            run(args, files.descriptors, lines.append)
        except CoppiceError as error:
            if not lines:
                raise
            return {**json.loads("".join(lines)), "model": "the model", "reason": str(error).split(": ", 2)[-1]}
        return {**json.loads("".join(lines)), "model": "the model"}
