"""Texts of the binary in the words of Python: the binary sends the names and values of options apart from the words around them."""

from __future__ import annotations

import json
from typing import Any, Sequence, Union

from ._options import argument_of

# Options that the library spells in another way.
_NAMES = {"threads": "n_jobs", "dir": "folder", "format": "kind", "true": "D_true", "predicted": "D_pred"}
# Options that a text names without a value, as the library writes them.
_ALONE = {"normalize": "normalize=True", "yes": "replace=True", "local": "server=None"}
# Commands that are functions of the library.
_COMMANDS = {"dataset import": "import_dataset"}


def text_of(parts: Sequence[Union[str, dict[str, Any]]]) -> str:
    """Return a text of the binary. Its parts are strings and places; docs/reference/json.md describes them."""
    texts: list[str] = []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            texts.append(part)
        else:
            begins = i == 0 and len(parts) > 1 and isinstance(parts[1], str) and parts[1].startswith(":")
            texts.append(_place(part, begins))
    return "".join(texts)


def _place(part: dict[str, Any], begins: bool) -> str:
    """Return a place. If a text begins with an option and a colon, the option has no quotes."""
    if "command" in part:
        return _COMMANDS.get(part["command"], f"coppice {part['command']}")
    if "value_of" in part or "option" not in part:
        return argument_of(part["value"]) if part.get("value_of") == "set" else _value(part.get("value_of", ""), part["value"])
    option = part["option"]
    name = argument_of(_NAMES.get(option, option).replace("-", "_"))
    if option == "set":
        hyperparameter, given, value = str(part.get("value", "parameter")).partition("=")
        return argument_of(hyperparameter) + (f"={value}" if given else "")
    if "value" in part:
        return f"{name}={_value(name, part['value'])}"
    if begins:
        return name
    return _ALONE.get(option, f"`{name}`")


def _value(option: str, text: str) -> str:
    """Return a value as Python writes it: a text in quotes, a range and a shape as a tuple."""
    words = {"true": "True", "false": "False", "+Inf": "inf", "-Inf": "-inf", "Inf": "inf", "NaN": "nan"}
    if option == "range" and ":" in text:
        return f"({text.replace(':', ', ')})"
    if option == "shape" and "x" in text:
        return f"({text.replace('x', ', ')})"
    if not option or text in words:
        return words.get(text, text)
    try:
        float(text)
    except ValueError:
        return text if text.isupper() else json.dumps(text, ensure_ascii=False)
    return text


def notes_of(text: str) -> list[tuple[str, str]]:
    """Return what a command wrote to its standard error besides an error: pairs of a kind, such as note or warning, and a text."""
    found = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found += [(kind, text_of(value[kind])) for kind in ("note", "warning", "info", "waiting") if kind in value]
    return found
