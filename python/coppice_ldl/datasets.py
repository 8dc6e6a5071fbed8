"""Read, fetch and generate datasets.

The binary reads files, so every format and option of the command line works: see docs/reference/data-formats.md.
"""

from ._datasets import Dataset, fetch, generate, load

__all__ = ["Dataset", "fetch", "generate", "load"]

Dataset.__module__ = __name__  # pickles name the public module


def __dir__() -> list[str]:
    return sorted(__all__)
