"""Texts of the binary in the words of Python: the binary sends the names and values of options apart from the words around them."""

from __future__ import annotations

import json
import re
from typing import Any, Sequence, Union

from ._options import ARGUMENTS, argument_of

# Options that the library spells in another way.
_NAMES = {"threads": "n_jobs", "dir": "folder", "format": "kind", "true": "D_true", "predicted": "D_pred", "weights": "sample_weight"}
# Options that a text names without a value, as the library writes them.
_ALONE = {"normalize": "normalize=True", "yes": "replace=True", "local": "server=None"}
# Commands that are functions and methods of the library.
_COMMANDS = {
    "dataset import": "import_dataset",
    "experiment report": "Report",
    "experiment run": "experiment",
    "train": "fit",
}

# Commands about one name, which come with the flags of the cluster.
_NAMED = {"dataset share": "Client.share_dataset({})", "job cancel": "Client.job({}).cancel()", "job resume": "Client.job({}).resume()"}
_OF_NAME = re.compile(r"coppice (dataset share|job cancel|job resume) ([\w./-]*\w)((?: --[a-z-]+(?:=\S+| [^\s-]\S*))*)")
# A command with its words in a plain text, up to the end of the clause or to a word in lower case of the sentence.
_COMMAND = re.compile(r"coppice (?P<command>(?:(?:cluster|certs|context|dataset|experiment|job|model|token) )?[a-z]+)(?P<words>(?: (?:--[a-z-]+|[A-Z_]+\b|[\w.,:/=-]*[\d:/=.][\w,:/=-]*))*)")
_FLAG = re.compile(r"(?<![\w/.=\"'`-])--(?P<name>[a-z][a-z-]*[a-z])(?:[ =](?P<value>[A-Z]+(?::[A-Z]+)?\b|-?\d[\w.:]*\b|\w+=[^\s,;)]+|(?:age|class|counts|incomplete|drop|mean|median|yes|no|curve|predictions)\b(?! of)))?")


def text_of(parts: Sequence[Union[str, dict[str, Any]]]) -> str:
    """Return a text of the binary. Its parts are strings and places; docs/reference/json.md describes them."""
    texts: list[str] = []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            texts.append(part)
        else:
            begins = i == 0 and len(parts) > 1 and isinstance(parts[1], str) and parts[1].startswith(":")
            texts.append(_place(part, begins))
    whole = "".join(texts)
    return plain(whole) if all(isinstance(part, str) for part in parts) else re.sub(r"^round 0: ", "", whole)


def plain(text: str) -> str:
    """Return a text that the binary has stored, in the words of Python.

    Such texts have no places: why a run or a job failed, what a job waits for, and notes of a cluster. A flag that is an argument of the
    library becomes the argument, and a command that is a function becomes the function. Other commands and their flags stay, because they
    are for those who operate a cluster.
    """
    text = _OF_NAME.sub(lambda found: _NAMED[found[1]].format("NAME" if found[2] == "NAME" else json.dumps(found[2])), text)
    texts: list[str] = []
    at = 0
    for found in _COMMAND.finditer(text):
        own = _COMMANDS.get(found["command"])
        texts += [_flags(text[at : found.start()]), own or found[0]]
        at = found.end()
    return re.sub(r"^round 0: ", "", "".join([*texts, _flags(text[at:])]))


def _flags(text: str) -> str:
    """Return a plain text without commands with arguments in place of flags."""

    def argument(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if name != "set" and _NAMES.get(name, name).replace("-", "_") not in ARGUMENTS and name not in _ALONE:
            return found[0]
        return _place({"option": name} if value is None else {"option": name, "value": value}, False)

    return _FLAG.sub(argument, text)


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
    if option == "bounds" and ":" in text:
        pairs = [f"({pair.replace(':', ', ')})" for pair in text.split(",")]
        return pairs[0] if len(pairs) == 1 else f"[{', '.join(pairs)}]"
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
