"""Types: mypy and pyright check the package, code of a user, and code with mistakes."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest

import coppice_ldl

USER = '''
"""Code of a user."""

from __future__ import annotations

import numpy as np

from coppice_ldl import AAKNN, ALGORITHMS, Client, CoppiceError, Estimator, InputError, LDLForest, Report, StructRF, datasets, experiment, load, metrics


def train(X: np.ndarray, D: np.ndarray) -> StructRF:
    model = StructRF(trees=20, features="sqrt", random_state=3, missing="mean").fit(X, D)
    trees: int | None = model.set_params(trees=10).fit(X, D).trees
    assert trees == 10
    return model


def study(X: np.ndarray, D: np.ndarray) -> Report:
    spec = {"name": "study", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [AAKNN(k=5), AAKNN(k="auto")]}
    return experiment(spec, verbose=False)


def submit(client: Client, X: np.ndarray, D: np.ndarray) -> str:
    job = client.submit(StructRF(trees=3), X, D, name="typed")
    return job.wait().state


def main() -> None:
    data = datasets.generate("artificial", rows=50, seed=1)
    model = train(data.X, data.D)
    predictions: np.ndarray = model.predict(data.X)
    print(float(np.mean(metrics.kl(data.D, predictions))) < 1, model.model_digest_.isalnum(), model.n_labels_, model.score(data.X, data.D) < 0)
    for name, kind in ALGORITHMS.items():
        one: Estimator = kind(random_state=2)
        assert one.get_params()["random_state"] == 2, name
    print(LDLForest(hidden=64, features="mlp", preset="paper"))
    for hidden in ([64, 64], (64, 64), np.array([64, 64])):
        LDLForest(hidden=hidden, features="mlp", freeze=["hidden1"], random_state=np.random.default_rng(1))
    LDLForest(shape=(1, 8, 8), features="conv", freeze=np.array(["hidden1"]), random_state=np.random.RandomState(1))
    try:
        load(b"no model")
    except InputError as error:
        print(error.kind)
    except CoppiceError as error:
        print(error.mistakes)
    print(len(study(data.X, data.D).json()["methods"]))


if __name__ == "__main__":
    main()
'''.lstrip()

# Each line has a mistake.
WRONG = """
StructRF(tree=3)
StructRF(trees="many")
LDLForest(preset="papr")
StructRF().fit([[1.0]], [[1.0]]).predict()
score: str = StructRF().score([[1.0]], [[1.0]])
trees: str = StructRF().fit([[1.0]], [[1.0]]).trees
Client(servers="127.0.0.1")
""".strip().split("\n")


@pytest.fixture
def files(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text("from coppice_ldl import Client, LDLForest, StructRF\n" + "\n".join(WRONG) + "\n")
    return tmp_path


def call(folder: pathlib.Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(args, cwd=folder, capture_output=True, text=True, timeout=180, check=False)


def mypy(folder: pathlib.Path, *args: str) -> "subprocess.CompletedProcess[str]":
    pytest.importorskip("mypy")
    return call(folder, sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), *args)


def test_the_package_has_types() -> None:
    folder = pathlib.Path(coppice_ldl.__file__).parent
    assert (folder / "py.typed").exists()


def test_mypy(files: pathlib.Path) -> None:
    for target in (["-p", "coppice_ldl"], ["user.py"]):
        done = mypy(files, *target)
        assert done.returncode == 0, done.stdout + done.stderr
    done = mypy(files, "wrong.py")
    assert {int(line) for line in re.findall(r"^wrong\.py:(\d+): error", done.stdout, re.M)} == set(range(2, 2 + len(WRONG))), done.stdout


def pyright(folder: pathlib.Path, mode: str, *include: str) -> list[dict[str, Any]]:
    found = shutil.which("pyright")
    if found is None:
        pytest.skip("pyright is not installed")
    root = str(pathlib.Path(coppice_ldl.__file__).parents[1])
    (folder / "pyrightconfig.json").write_text(json.dumps({"include": include, "extraPaths": [root], "typeCheckingMode": mode}))
    done = call(folder, found, "--outputjson", "--pythonpath", sys.executable)
    return [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]


def test_pyright(files: pathlib.Path) -> None:
    assert pyright(files, "strict", "user.py") == []
    assert {one["range"]["start"]["line"] for one in pyright(files, "standard", "wrong.py")} == set(range(1, 1 + len(WRONG)))


def test_the_code_of_the_user_runs(files: pathlib.Path) -> None:
    done = subprocess.run([sys.executable, "user.py"], cwd=files, env=dict(os.environ), capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True True 3 True\nLDLForest(features='mlp', hidden=64, preset='paper')\ndata\n2\n", done.stdout + done.stderr
