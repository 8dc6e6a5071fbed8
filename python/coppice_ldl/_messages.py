"""Messages of the command line in the words of Python."""

from __future__ import annotations

import re

from ._options import ARGUMENTS, argument_of

# Names of flags that the library spells in another way.
_NAMES = {"threads": "n_jobs", "set": "parameter", "dir": "folder", "format": "kind", "true": "D_true", "predicted": "D_pred"}

_START = r"(?<![\w/.-])--"
_FLAG = _START + r"(?P<name>[a-z][a-z-]*)"
# Texts of the command line, and what they are in Python.
_RULES = [(re.compile(pattern), text) for pattern, text in (
    (_START + r"drop leaves the feature out", "leave the feature out"),
    (_START + r"drop leaves (?:columns|the column) out", "leave the column out"),
    (_START + r"drop(?: \S+)? leaves it out", "leave it out"),
    (r"\bleave the flag out\b", "leave the argument out"),
    (r"\bwith --local, ", "without server, "),
    (r"needs a cluster, but --local uses none; leave one of them out", "needs server"),
    (r"\bneed --local\b", "need no server"),
    (r"\b--yes leaves them out", "replace=True leaves them out"),
    (r"\bgive it to coppice dataset import\b", "give it to import_dataset"),
    (_START + r"normalize divides", "normalize=True divides"),
    (_START + r"set[ =](\w+)(: |=(?=\S))", lambda found: argument_of(found[1]) + found[2]),
    (r"\bwant refuse, drop, mean, median or a number\b", 'want "refuse", "drop", "mean", "median" or a number'),
    (r"^ is not true or false$", " is not True or False"),
    (r"\bwant LOW:HIGH, two whole numbers with the lower number first", "want two whole numbers, the lower first"),
    (r"\bwant LOW:HIGH with the lower number first", "want two whole numbers, the lower first"),
    (r"\bsuch as (-?\d+):(-?\d+)$", r"such as (\1, \2)"),
    (r"\bCHANNELSxHEIGHTxWIDTH\b", "(channels, height, width)"),
    (r"\bsuch as (\d+)x(\d+)x(\d+)\b", r"such as (\1, \2, \3)"),
    (_START + r"range LOW:HIGH", "range=(LOW, HIGH)"),
    (r"(?:" + _START + r"|\b)range (-?\d+):(-?\d+)", r"range=(\1, \2)"),
    (_START + r"labels age or class\b", 'labels="age" or "class"'),
    (_START + r"labels (distributions|age|class|counts)\b", r'labels="\1"'),
    (_START + r"missing (refuse|drop|mean|median)\b", r'missing="\1"'),
    (_START + r"header (yes|no|auto)\b", r'header="\1"'),
    (_START + r"encoding ((?:utf|windows|iso|gb|shift|euc|mac|big|koi)[\w-]*)", r'encoding="\1"'),
    (_START + r"kind (random|textures|sparse|noisy|ages)\b", r'kind="\1"'),
    (_START + r"record ((?:curve|predictions)(?:,\w+)*)", r'record="\1"'),
    (_START + r"(decimal|thousands) ([.,])(?= |$)", r'\1="\2"'),
)]  # fmt: skip
_HELP = re.compile(r'; see "coppice [^"]*--help"|(?<=must be one of )"",')
_ITEMS = re.compile(r'(?<=\w",)(?="\w)')  # between the items of a list
_KEPT = re.compile(r'("[^"]*"|\bcoppice (?!dataset import\b)[a-z][^;:),]*|\bstart (?:it|\w+ \w+) with --[^;:),]*)')  # texts of users, and commands
_VALUE = re.compile(_FLAG + r"[ =](?P<value>-?\d+(?:\.\d+)?)(?![\w:])")
_QUOTED = re.compile(_FLAG + r' (?="[^"]*":)')
_ALONE = re.compile(_FLAG + r"(?P<colon>:)?")


def translated(text: str) -> str:
    """Return a message with keyword arguments in place of flags: ``--missing drop`` is ``missing="drop"``. Commands and quoted texts stay as they are."""
    text = _QUOTED.sub(lambda found: f"{_name(found)}=" if _name(found) else found[0], text)
    parts = _KEPT.split(_ITEMS.sub(" ", _HELP.sub("", text)))
    for i in range(0, len(parts), 2):
        for pattern, replacement in _RULES:
            parts[i] = pattern.sub(replacement, parts[i])
        parts[i] = _VALUE.sub(lambda found: f"{_name(found)}={found['value']}" if _name(found) else found[0], parts[i])
        parts[i] = _ALONE.sub(_argument, parts[i])
    return "".join(parts)


def _name(found: "re.Match[str]") -> str:
    """Return the argument of a flag, or "" if the flag is none of the library."""
    name = found["name"].replace("-", "_")
    name = _NAMES.get(name, name)
    return name if name in ARGUMENTS or name in _NAMES.values() else ""


def _argument(found: "re.Match[str]") -> str:
    name = _name(found)
    if not name:
        return found[0]
    return f"{name}:" if found["colon"] else f"`{name}`"
