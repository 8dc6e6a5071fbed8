"""Messages of the command line in the words of Python."""

from __future__ import annotations

import keyword
import re

from ._options import ARGUMENTS

# Names of flags that the library spells in another way.
_NAMES = {"threads": "n_jobs", "set": "parameter", "dir": "folder", "format": "kind", "true": "D_true", "predicted": "D_pred"}

_START = r"(?<![\w/.-])--"
_FLAG = _START + r"(?P<name>[a-z][a-z-]*)"
_RULES = [(re.compile(pattern), text) for pattern, text in (
    (_START + r"drop leaves the feature out", "leave the feature out"),
    (r"leave the flag out", "leave the argument out"),
    (r"\bwith --local, ", "without server, "),
    (_START + r"normalize divides", "normalize=True divides"),
    (_START + r"set (\w+)(: |=(?=\S))", lambda found: argument_of(found[1]) + found[2]),
    (r"\bis not true or false$", "is not True or False"),
    (r"\bwant LOW:HIGH, two whole numbers with the lower number first, such as -?\d+:\d+", "want two whole numbers, the lower first, such as (0, 69)"),
    (_START + r"range LOW:HIGH", "range=(LOW, HIGH)"),
    (_START + r"range (-?\d+):(-?\d+)", r"range=(\1, \2)"),
    (_START + r"labels (distributions|age|class|counts)\b", r'labels="\1"'),
    (_START + r"missing (refuse|drop|mean|median)\b", r'missing="\1"'),
    (_START + r"header (yes|no|auto)\b", r'header="\1"'),
    (_START + r"encoding ((?:utf|windows|iso|gb)[\w-]*)", r'encoding="\1"'),
    (_START + r"(decimal|thousands) ([.,])(?= |$)", r'\1="\2"'),
)]  # fmt: skip
_HELP = re.compile(r'; see "coppice [^"]*--help"|(?<=must be one of )"",')
_ITEMS = re.compile(r'(?<=\w",)(?="\w)')  # between the items of a list
_KEPT = re.compile(r'("[^"]*"|\bcoppice [a-z][^;:),]*)')  # texts of users, and commands
_VALUE = re.compile(_FLAG + r"[ =](?P<value>-?\d+(?:\.\d+)?)(?![\w:])")
_ALONE = re.compile(_FLAG)


def translated(text: str) -> str:
    """Return a message with keyword arguments in place of flags: ``--missing drop`` is ``missing="drop"``. Commands and quoted texts stay as they are."""
    parts = _KEPT.split(_ITEMS.sub(" ", _HELP.sub("", text)))
    for i in range(0, len(parts), 2):
        for pattern, replacement in _RULES:
            parts[i] = pattern.sub(replacement, parts[i])
        parts[i] = _VALUE.sub(_given, parts[i])
        parts[i] = _ALONE.sub(_name, parts[i])
    return "".join(parts)


def _name(found: "re.Match[str]") -> str:
    name = found["name"].replace("-", "_")
    name = _NAMES.get(name, name)
    return name if name in ARGUMENTS or name in _NAMES.values() else found[0]


def _given(found: "re.Match[str]") -> str:
    name = _name(found)
    return found[0] if name.startswith("--") else f"{name}={found['value']}"


def argument_of(name: str) -> str:
    """Return the parameter of a hyperparameter. The name of a keyword ends with an underscore: lambda is lambda_."""
    return name + "_" if keyword.iskeyword(name) else name
