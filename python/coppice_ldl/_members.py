"""The members of an ensemble, as the command line spells them."""

from __future__ import annotations

import json
from typing import Any, Mapping

from ._commands import is_default, text_of
from ._options import READING
from ._process import InputError

_SPECIAL = set(',:="\\')


def members_text(members: Any) -> str:
    """Return the text of members: ``structrf:trees=100,ldlf``.

    Parameters
    ----------
    members : str, or list
        An item of a list is an estimator, a dict such as ``{"algorithm": "structrf", "trees": 100}``, or a text such as
        ``"structrf:trees=100"``.

    Raises
    ------
    InputError
        If an item is none of these.
    """
    if isinstance(members, str):
        return members
    if not isinstance(members, (list, tuple)) or not members:
        raise InputError(f"members={members!r}: want a list of estimators, dicts or texts, such as [StructRF(trees=100), 'ldlf']")
    return ",".join(_member(f"members[{i}]", one) for i, one in enumerate(members))


def _member(where: str, member: Any) -> str:
    if isinstance(member, str):
        if not member.strip():
            raise InputError(f"{where}: the text is empty; give the name of an algorithm")
        return member
    if isinstance(member, Mapping):
        return _of_dict(where, member)
    algorithm = getattr(member, "_algorithm", None)
    if not algorithm or isinstance(member, type):
        hint = f"; give {member.__name__}()" if isinstance(member, type) and algorithm else ""
        raise InputError(f"{where}: {member!r} is not an estimator, a dict or a text{hint}")
    for name in ("random_state", *READING):
        if not is_default(getattr(member, name)):
            raise InputError(f"{where}: {member!r} has {name}, which the ensemble decides; give it to the ensemble")
    return _spelled(where, algorithm, member._settings())


def _of_dict(where: str, member: Mapping[Any, Any]) -> str:
    """Return the text of a dict with the settings next to the algorithm, or in the key settings as in a spec of an experiment."""
    if not isinstance(member.get("algorithm"), str):
        raise InputError(f"{where}: {dict(member)!r} has no algorithm; give the key algorithm with its name")
    settings = {key: value for key, value in member.items() if key not in ("algorithm", "settings")}
    nested = member.get("settings") or {}
    if not isinstance(nested, Mapping):
        raise InputError(f"{where}: settings={nested!r} is not a dict")
    twice = sorted(set(settings) & set(nested))
    if twice:
        raise InputError(f"{where}: {', '.join(map(str, twice))} is given twice")
    from .estimators import ALGORITHMS  # which imports this module

    both = {**settings, **nested}
    if member["algorithm"] in ALGORITHMS:
        model = ALGORITHMS[member["algorithm"]]()
        both = {name: model._setting(name, value) if isinstance(name, str) and name != "members" else value for name, value in both.items()}
    return _spelled(where, member["algorithm"], both)


def _spelled(where: str, algorithm: str, settings: Mapping[Any, Any]) -> str:
    words = [_quoted(algorithm)]
    for name, value in settings.items():
        if not isinstance(name, str) or isinstance(value, (Mapping, bytes)) or value is None:
            raise InputError(f"{where}: {name}={value!r} is no setting of an algorithm")
        if name == "members":
            raise InputError(f"{where}: an ensemble cannot be a member of an ensemble")
        words.append(f"{_quoted(name)}={_quoted(text_of(value))}")
    return ":".join(words)


def _quoted(word: str) -> str:
    """Return a word in quotes if it has other characters than the usual ones."""
    usual = word and all("!" <= letter <= "~" and letter not in _SPECIAL for letter in word)
    return word if usual else json.dumps(word)


__all__ = ["members_text"]
