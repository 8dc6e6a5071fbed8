"""Messages of the command line in the words of Python."""

from __future__ import annotations

import re

# Names of flags that the library spells in another way.
_NAMES = {"threads": "n_jobs", "set": "parameter"}

_START = r"(?<![\w/.-])--"
_FLAG = _START + r"(?P<name>[a-z][a-z-]*)"
_RULES = [(re.compile(pattern), text) for pattern, text in (
    (_START + r"drop leaves the feature out", "leave the feature out"),
    (r"leave the flag out", "leave the argument out"),
    (_START + r"normalize divides", "normalize=True divides"),
    (_START + r"set (\w+): ", r"\1: "),
    (_START + r"set (\w+)=(\S+)", r"\1=\2"),
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
        parts[i] = _VALUE.sub(lambda found: f"{_name(found)}={found['value']}", parts[i])
        parts[i] = _ALONE.sub(_name, parts[i])
    return "".join(parts)


def _name(found: "re.Match[str]") -> str:
    name = found["name"].replace("-", "_")
    return _NAMES.get(name, name)


def unknown_option(text: str) -> str:
    """Return the message about an option that the command does not have, or "" if the text is about something else."""
    found = re.match(r'unknown flag --([\w-]+)(?:, did you mean "--([\w-]+)"\?)?', text)
    if found is None:
        return ""
    near = f"; did you mean {found[2].replace('-', '_')!r}?" if found[2] else ""
    return f"unexpected keyword argument {found[1].replace('-', '_')!r}{near}"
