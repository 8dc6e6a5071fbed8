"""Fixtures of all tests. The tests run against the installed package."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

import numpy as np
import pytest

import coppice_ldl

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell ignores it in its background jobs, and children would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = pathlib.Path(os.environ.get("COPPICE_TEST_DATA") or pathlib.Path(__file__).parents[3] / "shared" / "data")

# Parameters that make a fit short.
SMALL: dict[str, dict] = {
    "ldlf": {"trees": 1, "depth": 3, "steps": 20, "validation_fraction": 0.0},
    "structrf": {"trees": 3},
    "rf": {"trees": 3},
    "dldl": {"steps": 20, "hidden": "8", "validation_fraction": 0.0},
    "aa-bp": {"steps": 20, "validation_fraction": 0.0},
    "mlp-regression": {"passes": 3},
    "cpnn": {"steps": 10},
    "sa-iis": {"iterations": 10},
    "df-ldl": {"iterations": 10, "decay": "fixed"},
    "ldlogitboost": {"rounds": 3},
    "aoso-ldlogitboost": {"rounds": 3},
    "ldlboost": {"rounds": 3},
    "ndf": {"trees": 2, "iters": 5, "starts": 1},
    "ensemble": {"members": "sa-bfgs,aa-knn", "inner_folds": 2},
}


@pytest.fixture
def data():
    """Return features and label distributions that depend on them."""
    return make(120)


def make(rows: int, features: int = 5, labels: int = 4, seed: int = 0):
    """Return X and D of a generated dataset."""
    draw = np.random.RandomState(seed)
    X = draw.normal(size=(rows, features))
    logits = np.tanh(X @ draw.normal(size=(features, labels)))
    D = np.exp(logits)
    return X, D / D.sum(axis=1, keepdims=True)


@pytest.fixture(scope="session")
def sjaffe():
    """Return the path of SJAFFE.mat."""
    path = DATA / "SJAFFE.mat"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return path


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Return the address of a cluster with one coordinator and two workers."""
    with cluster(tmp_path_factory.mktemp("cluster"), "--coordinators", "1", "--workers", "2") as address:
        yield address


@contextlib.contextmanager
def cluster(folder: pathlib.Path, *flags: str):
    """Run a cluster of `coppice quickstart`, with its files in folder/disks, and yield its address."""
    log = folder / "log"
    with log.open("w") as out:
        child = subprocess.Popen(
            [coppice_ldl.binary(), "quickstart", "--stay", "--steps", "5", "--dir", str(folder / "disks"), *flags],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: "COPPICE_SERVER=" in log.read_text() or child.poll() is not None, 120)
        found = re.search(r"COPPICE_SERVER=(\S+)", log.read_text())
        assert found, log.read_text()
        yield found[1]
    finally:
        child.terminate()
        child.wait(60)


def until(done, seconds: float = 30) -> None:
    """Wait until done() is true, or fail."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "the test waits in vain"
        time.sleep(0.01)
