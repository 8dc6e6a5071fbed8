"""Temporary folders."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref

from ._errors import CoppiceError
from ._process import current


class Folder:
    """A temporary folder. It is removed with the object, by `cleanup`, or as a context manager.

    The process makes it, and removes it if the interpreter is killed.
    """

    def __init__(self, prefix: str) -> None:
        process = current()
        try:
            above = tempfile.gettempdir()
        except FileNotFoundError as error:
            raise CoppiceError(f"an experiment and figures need a temporary folder ({error.strerror}); name a folder in the variable TMPDIR") from error
        self.name = process.run((), (), None, None, folder=os.path.join(above, prefix)).out
        self.cleanup = weakref.finalize(self, _remove, self.name, os.getpid())
        process.folders.add(self)

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()


def _remove(folder: str, owner: int) -> None:
    """Remove a folder, unless this is a fork of the interpreter that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
