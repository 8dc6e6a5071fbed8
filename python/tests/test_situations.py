"""Situations in which users of other libraries were surprised."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from conftest import make

import coppice_ldl
from coppice_ldl import SABFGS, CoppiceError, InputError, LDLForest, OptionError, ProcessError, datasets, metrics
from coppice_ldl._progress import Progress


def test_bars_end_full(monkeypatch, capsys):
    """A training that stops early ends with a full bar, and a failed one does not."""
    tqdm = pytest.importorskip("tqdm.auto")
    monkeypatch.setattr("coppice_ldl._progress.QUIET", 0)
    bars = []
    own = tqdm.tqdm
    monkeypatch.setattr(tqdm, "tqdm", lambda *args, **options: bars.append(own(*args, **options)) or bars[-1])
    with Progress("ldlf", True) as progress:
        progress.line('{"progress": {"step": 4200, "most_steps": 25000, "loss": 0.1}}\n')
    assert bars[0].n == bars[0].total == 4200
    with pytest.raises(KeyError), Progress("ldlf", True) as progress:
        progress.line('{"progress": {"step": 4200, "most_steps": 25000, "loss": 0.1}}\n')
        raise KeyError
    assert (bars[1].n, bars[1].total) == (4200, 25000)
    with Progress("experiment", True) as progress:
        progress.line('{"progress": {"runs": 20, "runs_done": 7, "seconds_left": 4.7}}\n')
        assert (bars[2].n, bars[2].total) == (35, 100)
    assert bars[2].n == 100
    assert "20 of 20 runs" in str(bars[2])
    assert "7 of 20 runs" in capsys.readouterr().err


def test_experiments_show_their_progress(monkeypatch, capfd):
    """verbose=True shows how many runs have ended."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    X, D = make(400)
    spec = {"name": "e", "folds": 10, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [LDLForest(trees=2, depth=5, steps=2000, patience=1000000)]}
    coppice_ldl.experiment(spec, verbose=True, n_jobs=1)
    assert "of 10 runs" in capfd.readouterr().err


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import coppice_ldl
X = np.random.RandomState(0).rand(200, 4)
spec = {"name": "e", "folds": 10, "datasets": [{"name": "d", "X": X, "D": X / X.sum(axis=1, keepdims=True)}],
        "methods": [coppice_ldl.AAKNN(), coppice_ldl.LDLForest(steps=1000000, patience=1000000)]}
threading.Timer(4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    coppice_ldl.experiment(spec, n_jobs=1)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_an_interrupt_keeps_ended_runs(tmp_path):
    """After an interrupt without a folder, the ended runs are where the message says."""
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, env=variables, timeout=120)
    assert found.returncode == 7, found.stderr
    folder = found.stderr.partition("results of runs that ended are in ")[2].partition(";")[0]
    assert folder.startswith(str(tmp_path)) and os.path.exists(os.path.join(folder, "cells.log")), found.stderr


def test_without_a_temporary_folder(monkeypatch, tmp_path):
    """Estimators and measures need no temporary folder. An experiment says that it needs one."""
    if not hasattr(os, "memfd_create"):
        pytest.skip("files without a name are in a temporary folder here")

    def none():
        raise FileNotFoundError(2, "No usable temporary directory found")

    coppice_ldl.close()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", none)
    X, D = make(60)
    model = SABFGS(iterations=2).fit(X, D)
    assert model.predict(X).shape == D.shape and metrics.kl(D, D) == 0
    with pytest.raises(CoppiceError, match="TMPDIR"):
        coppice_ldl.experiment({"name": "e", "datasets": [{"name": "d", "X": X, "D": D}], "methods": ["aa-knn"]})


def test_pickles_have_no_arrays():
    """A pickle of NumPy 2 is read by NumPy 1: it names nothing of NumPy."""
    X, D = make(60)
    classes = np.array(["a", "b"])[np.arange(60) % 2]
    for model in (SABFGS(iterations=np.int64(3)).fit(X, D), LDLForest(trees=1, depth=2, steps=3, validation_fraction=0.2, labels="class").fit(X, classes)):
        data = pickle.dumps(model)
        assert b"numpy" not in data
        again = pickle.loads(data)
        assert (again.predict(X) == model.predict(X)).all()
        for name in ("label_names_", "classes_"):
            if hasattr(model, name):
                one, other = getattr(model, name), getattr(again, name)
                assert one.dtype == other.dtype and one.tolist() == other.tolist()
        for name, column in model.learning_curve_.items():
            assert column.dtype == again.learning_curve_[name].dtype and np.array_equal(column, again.learning_curve_[name], equal_nan=True)


def _zombies(_):
    X, D = make(30)
    SABFGS(iterations=1).fit(X, D)
    return coppice_ldl._process._current.child.pid


def test_children_of_multiprocessing_leave_no_process():
    """A child of multiprocessing ends its process of coppice, although it runs no atexit."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pids = set(pool.map(_zombies, range(4)))
        pool.close()
        pool.join()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_binary_without_its_executable_bit(monkeypatch, tmp_path):
    copy = tmp_path / "coppice"
    copy.write_bytes(b"#!/bin/sh\n")
    copy.chmod(0o644)
    monkeypatch.setenv("COPPICE_BINARY", str(copy))
    with pytest.raises(ProcessError, match=r"noexec: .*chmod \+x .*COPPICE_BINARY"):
        metrics.kl([[0.5, 0.5]], [[0.5, 0.5]])


def test_names_and_paths(tmp_path):
    """Names that are nearly right, and paths that are none, have an error that helps."""
    with pytest.raises(AttributeError, match="did you mean 'SABFGS'"):
        _ = coppice_ldl.SA_BFGS
    with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
        _ = coppice_ldl.nothing
    (tmp_path / "SJAFFE.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no such file; there is SJAFFE.csv"):
        datasets.load(tmp_path / "SJAFFE")
    for load in (datasets.load, coppice_ldl.load):
        with pytest.raises(InputError, match="a URL is not read"):
            load("https://example.org/x.csv")
    path = tmp_path / "m.coppice"
    SABFGS(iterations=1).fit(*make(30)).save(str(path))
    with pytest.raises(InputError, match="a path in bytes"):
        coppice_ldl.load(os.fsencode(path))
    assert coppice_ldl.load(path.read_bytes()).n_labels_ == 4


def test_completion() -> None:
    """jedi reads the sources. It completes public names only."""
    jedi = pytest.importorskip("jedi")
    for module in (coppice_ldl, coppice_ldl.datasets, coppice_ldl.estimators, coppice_ldl.metrics):
        found = {one.name for one in jedi.Script(f"import {module.__name__}\n{module.__name__}.").complete()}
        public = {name for name in found if not name.startswith("_")} - {"bin", "estimators", "Estimator"}  # parts of the package, and a base class
        assert public == {name for name in module.__all__ if not name.startswith("_")} - {"Estimator"}, module.__name__


def test_paths_that_are_not_utf8(tmp_path) -> None:
    """Models have paths in any encoding. Data, folders and specs of another encoding than UTF-8 are refused, and nothing is written."""
    latin = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    X, D = make(40)
    model = SABFGS().fit(X, D)
    model.save(latin + ".model")
    assert coppice_ldl.load(latin + ".model").model_digest_ == model.model_digest_
    with open(latin + ".csv", "w", encoding="utf-8") as file:
        file.write("a,label_x,label_y\n1,0.5,0.5\n")
    before = set(os.listdir(tmp_path))
    spec = {"name": "s", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [{"algorithm": "sa-bfgs"}]}
    for call in (
        lambda: datasets.load(latin + ".csv"),
        lambda: coppice_ldl.experiment(spec, folder=latin, verbose=False),
        lambda: coppice_ldl.experiment(latin + ".yaml", verbose=False),
        lambda: coppice_ldl.experiment({**spec, "datasets": [{"name": "d", "file": latin + ".csv"}]}, verbose=False),
    ):
        with pytest.raises(InputError, match=r"caf\\udce9.*not UTF-8; if it is a path, rename"):
            call()
    assert set(os.listdir(tmp_path)) == before


def test_utf8_in_the_c_locale(tmp_path) -> None:
    """In the C locale, Python reads the bytes of a path as surrogates. The process gets the path."""
    code = "import sys, coppice_ldl; print(coppice_ldl.datasets.load(sys.argv[1]).X.shape)"
    path = tmp_path / "caf\u00e9.csv"
    path.write_text("a,label_x,label_y\n1,0.5,0.5\n2,0.5,0.5\n", encoding="utf-8")
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run([sys.executable, "-c", code, path], env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert ended.stdout == "(2, 1)\n", ended.stderr


def test_save_takes_a_path(tmp_path: Path) -> None:
    model = SABFGS().fit(*make(60))
    with open(tmp_path / "file", "wb") as file:
        for wrong in (file.fileno(), True, b"name", None, file):
            with pytest.raises(TypeError, match="want the path of a file"):
                model.save(wrong)  # type: ignore[arg-type]
        file.write(b"still open")
    with pytest.raises(OptionError, match="did you mean rows?"):
        datasets.generate(row=10)


NO_STDERR = """
import os, sys
out = os.dup(1)
sys.stderr = None
import numpy as np
import coppice_ldl
from coppice_ldl import _progress
_progress.QUIET = 0
X = np.random.RandomState(0).rand(60, 4)
D = X / X.sum(axis=1, keepdims=True)
coppice_ldl.SABFGS(verbose=True).fit(X, D)
coppice_ldl.experiment({"name": "e", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [coppice_ldl.AAKNN()]}, verbose=True)
os.write(out, b"done")
"""


def test_progress_without_a_standard_error():
    """verbose=True shows nothing if there is no standard error, as in a program without a terminal."""
    found = subprocess.run([sys.executable, "-c", NO_STDERR], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "done", "")


def test_lines_end_with_how_the_call_ended(monkeypatch, capsys):
    """Without tqdm, the last line says how the call has ended."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr("coppice_ldl._progress.QUIET", 0)
    for error, ended in ((None, "done"), (KeyError, "failed"), (KeyboardInterrupt, "interrupted")):
        try:
            with Progress("ldlf", True) as progress:
                progress.line('{"progress": {"step": 40, "most_steps": 80, "loss": 0.1}}\n')
                if error:
                    raise error
        except (KeyError, KeyboardInterrupt):
            pass
        assert capsys.readouterr().err == f"ldlf: 50 %, step 40, K-L 0.10000\nldlf: {ended} after 0 s, step 40, K-L 0.10000\n"
    with Progress("experiment", True) as progress:
        progress.line('{"progress": {"runs": 20, "runs_done": 7}}\n')
    assert capsys.readouterr().err.endswith("\nexperiment: done after 0 s, 20 of 20 runs\n")
    with Progress("ldlf", True):
        pass
    assert capsys.readouterr().err == ""


def test_bars_do_not_move_backwards(monkeypatch):
    """The steps of an ensemble are estimates: a later estimate may have a larger total, or a smaller step."""
    tqdm = pytest.importorskip("tqdm.auto")
    monkeypatch.setattr("coppice_ldl._progress.QUIET", 0)
    bars = []
    own = tqdm.tqdm
    monkeypatch.setattr(tqdm, "tqdm", lambda *args, **options: bars.append(own(*args, **options)) or bars[-1])
    parts = []
    with Progress("ensemble", True) as progress:
        for step, steps in ((100, 400), (300, 400), (200, 800), (500, 800), (500, 600), (550, 0), (560, 600)):
            progress.line(f'{{"progress": {{"step": {step}, "steps": {steps}}}}}\n')
            parts.append(bars[0].n / bars[0].total)
    assert parts == sorted(parts) and parts[1] == 0.75 and parts[-1] < 1, parts


def test_paths_that_are_none(tmp_path: Path) -> None:
    """What is not a path is refused. A number is not read as a descriptor, and an empty path is not the working directory."""
    model = SABFGS().fit(*make(60))
    report = coppice_ldl.experiment({"name": "e", "folds": 2, "datasets": [dict(zip(("name", "X", "D"), ("d", *make(40))))], "methods": ["aa-knn"]}, verbose=False)
    calls = {
        "load": coppice_ldl.load,
        "datasets.load": datasets.load,
        "save": model.save,
        "report.save": report.save,
        "figures": report.figures,
        "Report": coppice_ldl.Report,
    }
    with open(tmp_path / "file", "w+b") as file:
        for name, call in calls.items():
            for wrong in (0, None, file):
                with pytest.raises(TypeError, match="want the path of .*, got"):
                    call(wrong)  # type: ignore[arg-type]
            with pytest.raises(InputError, match="the path is empty; give the path of"):
                call("")
