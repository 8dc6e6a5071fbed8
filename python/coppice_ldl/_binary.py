"""The ``coppice`` binary."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Optional

from ._build import BUNDLED, VERSION
from ._errors import ProcessError


def binary() -> str:
    """Return the path of the ``coppice`` binary.

    It is the binary in the wheel, or else ``coppice`` on ``PATH``. The variable ``COPPICE_BINARY`` overrides both.

    Returns
    -------
    str

    Raises
    ------
    ProcessError
        If there is no binary.
    """
    given = os.environ.get("COPPICE_BINARY")
    if given:
        return given
    if BUNDLED:
        return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "coppice")
    found = shutil.which("coppice")
    if found is None:
        raise ProcessError(
            "there is no coppice on PATH, and this wheel of coppice-ldl has no binary; "
            f"install coppice {VERSION}, or a wheel for this platform"
        )
    return found


def unfit(path: str, found: Optional[str]) -> str:
    """Say why a binary does not fit this library. `found` is its version, or None if it has sent none."""
    if found is None:
        try:
            shown = subprocess.run([path, "version"], capture_output=True, text=True, timeout=10, check=False)
            said = (shown.stdout or shown.stderr).strip().splitlines()
        except (OSError, subprocess.SubprocessError):
            said = []
        if said:
            return f"{path} is {said[0]!r}, but coppice-ldl {VERSION} needs coppice {VERSION}"
        return f"{path} does not answer as coppice does; coppice-ldl {VERSION} needs coppice {VERSION}"
    return f"{path} has version {found}, but coppice-ldl {VERSION} needs coppice {VERSION}; install equal versions"
