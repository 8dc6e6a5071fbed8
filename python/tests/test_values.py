"""Values that must not be ignored, and values of other types that mean the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from coppice_ldl import AAKNN, Client, Ensemble, InputError, LDLForest, StructRF, datasets, experiment
from coppice_ldl._parameters import flags
from coppice_ldl._tables import table
from conftest import make, until

X, D = make(40, 5, 3)
DATASET = {"name": "d", "X": X, "D": D}
SPEC = {"name": "e", "folds": 2, "methods": ["aa-knn"], "datasets": [DATASET]}
IMAGES = {"features": "conv", "shape": (1, 1, 5), "channels": [2], "kernel": 1, "pool": 1, "hidden": [4], "trees": 1, "depth": 2, "steps": 2}


@pytest.mark.parametrize("given", [{"random_state": 0}, {"missing": 0}, {"missing": 0.0}, {"sigma": 0}])
def test_zero_is_a_value(given: dict) -> None:
    for call in (
        lambda: experiment({**SPEC, "methods": [AAKNN(**given)]}, verbose=False),
        lambda: Ensemble(members=[AAKNN(**given), "sa-bfgs"]).fit(X, D),
        lambda: Client("127.0.0.1:1").submit(AAKNN(**given), "named") if "random_state" not in given else AAKNN(k=0).fit(X, D),
    ):
        with pytest.raises(InputError):
            call()


def test_members_have_the_values_of_estimators() -> None:
    want = Ensemble(members=["ldlf:features=conv:shape=1x1x5:channels=2:kernel=1:pool=1:hidden=4:trees=1:depth=2:steps=2", "aa-knn"]).fit(X, D)
    for first in (LDLForest(**IMAGES), {"algorithm": "ldlf", **IMAGES}, {"algorithm": "ldlf", "settings": IMAGES}):
        assert Ensemble(members=[first, AAKNN()]).fit(X, D).model_digest_ == want.model_digest_
    for wrong in (StructRF(features=1), {"algorithm": "structrf", "features": 1}):
        with pytest.raises(InputError, match="not a whole number"):
            Ensemble(members=[wrong, "aa-knn"]).fit(X, D)


def test_ranges_of_datasets_are_pairs() -> None:
    spec = {**SPEC, "datasets": [{"name": "d", "X": X, "D": np.arange(40) % 5, "labels": "age", "sigma": 1, "range": (0, 4)}]}
    assert (experiment(spec, verbose=False).runs["state"] == "done").all()


def test_warnings_arrive(server: str) -> None:
    holes = np.where(np.arange(200).reshape(40, 5) == 7, np.nan, X)
    spec = {**SPEC, "datasets": [{**DATASET, "X": holes, "missing": "drop"}]}
    client = Client(server)
    for call in (
        lambda: experiment(spec, verbose=False),
        lambda: client.submit(AAKNN(missing="drop"), holes, D),
        lambda: client.import_dataset(holes, D, name="holes", missing="drop", verbose=False),
    ):
        with pytest.warns(UserWarning, match="1 of 40 samples") as told:
            call()
        assert told[0].filename == __file__
    AAKNN().fit(X, D, server=server, name="twice")
    with pytest.warns(UserWarning, match="nothing was trained"):
        AAKNN().fit(X, D, server=server, name="twice")


def test_refused(server: str, tmp_path) -> None:
    np.savez(tmp_path / "a.npz", features=X, labels=D)
    for call in (
        lambda: Client(server).import_dataset(tmp_path / "a.npz", D, name="x"),
        lambda: experiment(SPEC, folder=tmp_path / "e", replace="no"),
        lambda: experiment(SPEC, verbose="no"),
        lambda: experiment(SPEC, server=server, n_jobs=2),
        lambda: AAKNN(n_jobs="x").fit(X, D, server=server),
        lambda: AAKNN(n_jobs=2000).fit(X, D),
        lambda: Client(server).jobs(limit=True),
        lambda: datasets.load(tmp_path / "a.npz", label_columns=object()),
        lambda: experiment("--help"),
    ):
        with pytest.raises((InputError, LookupError)) as error:
            call()
        assert "perhaps" not in str(error.value)


def test_flags() -> None:
    assert flags({"header": False, "mine": True, "wait": 3, "limit": None, "missing": False}) == ["--header=no", "--mine=true", "--wait=3.000000s"]
    assert flags({"label_columns": range(2), "drop": np.array(["a", "b"])}) == ["--label-columns=0,1", "--drop=a,b"]
    pandas = pytest.importorskip("pandas")
    assert flags({"label_columns": pandas.DataFrame({"a": [], "b": []}).columns}) == ["--label-columns=a,b"]


def test_empty_tables_have_types() -> None:
    pytest.importorskip("pandas")
    empty = table("jobs", [])
    assert not empty["name"].str.startswith("a").any() and str(empty["submitted"].dtype) == "datetime64[ns, UTC]"


@pytest.mark.skipif(sys.platform != "linux", reason="it needs memfd")
def test_killed_after_a_change_of_folder(tmp_path) -> None:
    code = """
import os, numpy as np
from coppice_ldl import AAKNN, experiment
from conftest import make
X, D = make(40, 5, 3)
report = experiment({"name": "e", "folds": 2, "methods": ["aa-knn"], "datasets": [{"name": "d", "X": X, "D": D}]}, verbose=False)
os.chdir("/")
for _ in range(3):
    AAKNN().fit(X, D)
print(len(report.runs), flush=True)
os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, cwd=os.path.dirname(__file__), capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL and ended.stdout == "2\n", ended.stderr
    until(lambda: os.listdir(tmp_path) == [])


def test_no_warning_without_a_reason() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        experiment(SPEC, verbose=False)
