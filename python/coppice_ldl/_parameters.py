"""Parameters of estimators and options of calls, as the command line takes them."""

from __future__ import annotations

import json
import numbers
import os
import re
from typing import Any, Mapping, Optional

import numpy as np

from ._algorithms import CLASSES, Parameters
from ._errors import InputError, shown, within
from ._options import COMMON, READING, argument_of, flag_of

_LISTS = (list, tuple, np.ndarray)


# Values.


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return the flags of options: label_columns=["a", "b"] is ``--label-columns=a,b``. None and False are left out."""
    found = []
    for name, value in options.items():
        if name == "header" and isinstance(value, (bool, np.bool_)):
            value = "yes" if value else "no"
        if value is None or isinstance(value, (bool, np.bool_)) and not value:
            continue
        found.append(f"--{name.replace('_', '-')}={spelled(name, value)}")  # a value may begin with -
    return found


def spelled(name: str, value: Any) -> str:
    """Return the text of a value: the range (0, 69) is 0:69, the shape (1, 8, 8) is 1x8x8, and a list has commas."""
    with within(f"{name}={shown(value)}"):
        if name == "range" and not isinstance(value, str):
            bounds = list(value) if isinstance(value, _LISTS) else []
            if len(bounds) != 2 or not all(_is_whole(one) for one in bounds):
                raise InputError("want two whole numbers, such as (0, 69)")
            if bounds[0] >= bounds[1]:
                raise InputError("want two different numbers, the lower first, such as (0, 69)")
            return f"{bounds[0]}:{bounds[1]}"
        if name == "bounds" and not isinstance(value, str):
            return _pairs(value)
        if name == "wait" and not isinstance(value, str):
            return seconds(value)
        if name == "shape" and isinstance(value, _LISTS):
            return "x".join(_text(one) for one in value)
        return _text(value)


def _pairs(value: Any) -> str:
    """Return the text of bounds: (0, 1) is 0:1, and [(0, 1), (-1, 1)] is 0:1,-1:1."""
    items = list(value) if isinstance(value, _LISTS) else []
    pairs = [items] if len(items) == 2 and all(is_number(one) for one in items) else items
    if not pairs or not all(isinstance(pair, _LISTS) and len(pair) == 2 and all(is_number(one) for one in pair) for pair in pairs):
        raise InputError("want two numbers, such as (0, 1), or a list with two numbers for each label")
    return ",".join(f"{float(low)!r}:{float(high)!r}" for low, high in pairs)


def seconds(value: Any, least: float = 0) -> str:
    """Return a time as the command line takes it."""
    if not is_number(value) or not value >= 0:
        raise InputError("want seconds from 0")
    return f"{min(max(float(value), least), 1e9):.6f}s"


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.generic):
        value = value.item()
    elif hasattr(value, "tolist"):  # an array, or an index of pandas
        value = value.tolist()
    elif isinstance(value, range):
        value = list(value)
    if isinstance(value, (list, tuple)):
        texts = [_text(one) for one in value]
        if any("," in one for one in texts):
            raise InputError("no item may have a comma, which separates the items of a list")
        return ",".join(texts)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if not isinstance(value, (str, int, float)):
        raise InputError(f"the type {type(value).__name__} is not possible; want a text, a number or a list of them")
    text = repr(value) if isinstance(value, float) else str(value)
    if "/dev/fd/@" in text or "\0" in text:
        raise InputError("this text is not possible")
    return text


def utf8(text: str) -> str:
    """Return a text as the process gets it. Python reads bytes of a path that are no characters of the locale as surrogates.

    Raises
    ------
    InputError
        If the bytes are not UTF-8.
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode()
    except UnicodeError as error:
        advice = "the text is not UTF-8; if it is a path, rename the file or its folder, or give the path of a link with another name"
        raise InputError(f"{ascii(text)}: {advice}") from error


def is_number(value: Any) -> bool:
    """Return True if a value is one real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


# Parameters that all estimators have, and flags of all calls.


def is_default(name: str, value: Any) -> bool:
    """Return True if a parameter of all estimators has its default, or a value with the same meaning."""
    if isinstance(value, str):
        return (name, value) in (("labels", "distributions"), ("missing", "refuse"))
    return value is None or name == "normalize" and isinstance(value, (bool, int, np.bool_, np.integer)) and not value


def is_same(name: str, value: Any, other: Any) -> bool:
    """Return True if two values of a parameter of all estimators have the same meaning, such as the ranges (0, 4) and [0, 4]."""
    if is_default(name, value) or is_default(name, other):
        return is_default(name, value) and is_default(name, other)
    if is_number(value) and is_number(other):
        return bool(value == other)
    try:
        return spelled(name, value) == spelled(name, other)
    except InputError:  # fit refuses the new value, too
        return False


def given(estimator: Parameters) -> list[str]:
    """Return the parameters of an estimator that say how data are read, and are not the default."""
    fixed = {"labels": "bounded"} if estimator._predicts == "targets" else {}
    return [name for name in READING if not is_default(name, getattr(estimator, name)) and fixed.get(name) != getattr(estimator, name)]


def cluster_flags(
    server: Optional[str] = None,
    context: Optional[str] = None,
    token_file: Optional[str] = None,
    ca_file: Optional[str] = None,
    tls_dir: Optional[str] = None,
) -> list[str]:
    """Return the flags that name a cluster. Without any, the list is empty."""
    if isinstance(token_file, str) and without_tokens(token_file) != token_file:
        raise InputError("token_file: the value looks like a token; write the token to a file that only you can read, and give its path")
    return flags({"server": server, "context": context, "token_file": token_file, "ca_file": ca_file, "tls_dir": tls_dir})


def without_tokens(text: str) -> str:
    """Return a text without the secrets of tokens."""
    return re.sub(r"coppice_([0-9a-f]{16})_\w*", r"coppice_\1_SECRET", text)


def threads(n_jobs: Optional[int]) -> list[str]:
    """Return the flag for a number of threads. None and -1 stand for all processors, -2 for all but one."""
    if n_jobs is None or _is_whole(n_jobs) and n_jobs == -1:
        return []
    if not _is_whole(n_jobs) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r}: want a number of threads from 1; None or -1 for all processors; -2 for all but one")
    if n_jobs > 1024:
        raise InputError(f"n_jobs={n_jobs!r}: at most 1024 threads are possible")
    if n_jobs < 0:
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        n_jobs = max(1, allowed + 1 + int(n_jobs))
    return ["--threads", str(int(n_jobs))]


def seed_flag(random_state: Any) -> str:
    """Return the flag of the seed. None is 1, as on the command line. A generator draws a seed."""
    if random_state is None:
        return "--seed=1"
    if _is_whole(random_state):
        if not 0 <= random_state < 2**64:
            raise InputError(f"random_state={random_state!r}: want a whole number from 0 to {2**64 - 1}")
        return f"--seed={random_state}"
    for name in ("randint", "integers"):
        if hasattr(random_state, name):
            return f"--seed={getattr(random_state, name)(0, 2**31 - 1)}"
    raise InputError(f"random_state={random_state!r}: want a whole number, None or a generator of NumPy")


def missing_flag(missing: Any, default: str = "") -> list[str]:
    """Return the flag about missing values. None is the default; without a default there is no flag."""
    if missing is None:
        return [f"--missing={default}"] if default else []
    if not isinstance(missing, str) and not (is_number(missing) and np.isfinite(missing)):
        raise InputError(f'missing={missing!r}: want "refuse", "drop", "mean", "median" or a number')
    return [f"--missing={_text(missing)}"]


def training_flags(estimator: Parameters, imported: bool = False) -> list[str]:
    """Return the flags of the parameters of an estimator, without the seed. A generator draws it, which must not happen before data are checked.

    `imported` is true if the data are a dataset of a cluster, which knows how its labels were read.
    """
    found = []
    for name, value in settings(estimator).items():
        found += ["--set", f"{name}={spelled(argument_of(name), value)}"]
    labels, sigma, normalize = estimator.labels, estimator.sigma, estimator.normalize
    if not isinstance(labels, str) or labels not in ("distributions", "incomplete", "age", "class", "counts", "bounded"):
        raise InputError(f'labels={labels!r}: want "distributions", "incomplete", "age", "class", "counts" or "bounded"')
    if not imported and estimator._predicts == "number" and labels in ("distributions", "counts") and estimator.range is None:
        raise InputError(f'{type(estimator).__name__} predicts numbers; give labels="age" with sigma and range, or give range, the numbers of the labels')
    if labels != "distributions":
        found += ["--labels", labels]
    if sigma is not None:
        if not is_number(sigma):
            raise InputError(f"sigma={sigma!r}: want a number above 0")
        found += [f"--sigma={_text(sigma)}"]
    if estimator.range is not None:
        found += [f"--range={spelled('range', estimator.range)}"]
    if estimator.bounds is not None:
        found += [f"--bounds={spelled('bounds', estimator.bounds)}"]
    found += missing_flag(estimator.missing)
    if normalize is not None and not (isinstance(normalize, (bool, int, np.bool_, np.integer)) and normalize in (0, 1)):
        raise InputError(f"normalize={normalize!r}: want True or False")
    return [*found, "--normalize"] if normalize else found


# Hyperparameters.


def settings(estimator: Parameters) -> dict[str, Any]:
    """Return the hyperparameters that are not None, by their names on the command line: lambda_ is lambda."""
    values = {name: getattr(estimator, name) for name in estimator._parameters() if name not in COMMON}
    return {flag_of(name): _setting(type(estimator), name, value) for name, value in values.items() if value is not None}


def settings_of(algorithm: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters of a dict, as `settings` has them. Names that the algorithm does not have are kept."""
    estimator = CLASSES.get("ensemble" if algorithm == "best" else algorithm)
    if estimator is None:
        return dict(values)
    return {flag_of(name) if isinstance(name, str) else name: _setting(estimator, name, value) for name, value in values.items()}


def _setting(estimator: type[Parameters], name: str, value: Any) -> Any:
    """Return the value of a hyperparameter for a command line or a spec: a list becomes a text."""
    forms = estimator._forms.get(name, ())
    if "members" in forms:
        return members_text(value)
    with within(f"{name}={shown(value)}"):
        if isinstance(value, (dict, set, frozenset)):
            raise InputError(f"want one value{' or a list' if 'list' in forms else ''}, not a {type(value).__name__}")
        if "float" in forms and _is_whole(value):
            raise InputError("want a fraction such as 0.5 (1.0 is all) or a text, not a whole number")
        if "bool" in forms and isinstance(value, str):
            raise InputError("want True or False, not a text")
        if not isinstance(value, _LISTS) or isinstance(value, np.ndarray) and value.ndim == 0:
            return value
        if "list" not in forms:
            raise InputError("want one value, not a list")
        if any(isinstance(one, _LISTS) for one in value):
            raise InputError("want a list without lists in it")
    return spelled(name, value) if len(value) else "none"


def value_of(text: Any, forms: Any = ("bool", "int", "float")) -> Any:
    """Return a setting as a bool or a number if its text is one, and the hyperparameter takes it."""
    if not isinstance(text, str):
        return text
    if "bool" in forms and text in ("true", "false"):
        return text == "true"
    for form, kind in (("int", int), ("float", float)):
        try:
            if form in forms:
                return kind(text)
        except ValueError:
            continue
    return text


# Members of ensembles.

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
        raise InputError(f"members={shown(members)}: want a list of estimators, dicts or texts, such as [StructRF(trees=100), 'ldlf']")
    texts = []
    for i, one in enumerate(members):
        with within(f"members[{i}]"):
            texts.append(_member(one))
    return ",".join(texts)


def _member(member: Any) -> str:
    if isinstance(member, str):
        if not member.strip():
            raise InputError("the text is empty; give the name of an algorithm")
        return member
    if isinstance(member, Mapping):
        return _of_dict(member)
    algorithm = getattr(member, "_algorithm", None)
    if not algorithm or isinstance(member, type):
        hint = f"; give {member.__name__}()" if isinstance(member, type) and algorithm else ""
        raise InputError(f"{shown(member)} is not an estimator, a dict or a text{hint}")
    own = given(member) + (["random_state"] if member.random_state is not None else [])
    if own:
        raise InputError(f"{shown(member)} has {', '.join(own)}, which the ensemble decides; give it to the ensemble")
    return _spelled(algorithm, settings(member))


def _of_dict(member: Mapping[Any, Any]) -> str:
    """Return the text of a dict with the settings next to the algorithm, or in the key settings as in a spec of an experiment."""
    if not isinstance(member.get("algorithm"), str):
        raise InputError(f"{shown(dict(member))} has no algorithm; give the key algorithm with its name")
    flat = {key: value for key, value in member.items() if key not in ("algorithm", "settings")}
    nested = member.get("settings") or {}
    if not isinstance(nested, Mapping):
        raise InputError(f"settings={shown(nested)} is not a dict")
    twice = sorted(set(flat) & set(nested))
    if twice:
        raise InputError(f"{', '.join(map(str, twice))} is given twice")
    return _spelled(member["algorithm"], settings_of(member["algorithm"], {**flat, **nested}))


def _spelled(algorithm: str, values: Mapping[Any, Any]) -> str:
    words = [_quoted(algorithm)]
    for name, value in values.items():
        if not isinstance(name, str) or isinstance(value, (Mapping, bytes)) or value is None:
            raise InputError(f"{name}={shown(value)} is no setting of an algorithm")
        if name == "members":
            raise InputError("an ensemble cannot be a member of an ensemble")
        words.append(f"{_quoted(name)}={_quoted(spelled(name, value))}")
    return ":".join(words)


def _quoted(word: str) -> str:
    """Return a word in quotes if it has other characters than the usual ones."""
    usual = word and all("!" <= letter <= "~" and letter not in _SPECIAL for letter in word)
    return word if usual else json.dumps(word)
