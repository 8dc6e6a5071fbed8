"""The process of the binary: kills, forks, threads and interrupts."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import coppice_ldl
from coppice_ldl import AAKNN, CoppiceError, ProcessError, StructRF, _process, metrics
from conftest import make, until

LINUX = sys.platform == "linux"
LONG = {"trees": 10000, "max_depth": 60, "min_samples": 2}


def processes(folder: pathlib.Path) -> set[int]:
    """Return the processes of the binary that serve a library, and have this folder for temporary files."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"library" in command and f"TMPDIR={folder}".encode() in variables:
                found.add(int(entry.name))
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def start(code: str, **environment: str) -> subprocess.Popen:
    """Start an interpreter that runs code and prints "ready" at some time."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=os.path.dirname(__file__),
        env={**os.environ, **environment},
    )


FIT = """
    import threading, time
    from coppice_ldl import StructRF, _process
    from conftest import make
    X, D = make({rows}, 200)
    _process.run(["version"])
    threading.Timer({after}, lambda: print("ready", flush=True)).start()
    StructRF(trees=10000, max_depth=60, min_samples=2).fit(X, D)
"""
PREDICT = """
    import threading, time
    from coppice_ldl import StructRF
    from conftest import make
    X, D = make(400, 20)
    model = StructRF(trees=50).fit(X, D)
    X, D = make(200000, 20)
    threading.Timer({after}, lambda: print("ready", flush=True)).start()
    while True:
        model.predict(X)
"""


STUDY = """
    import threading
    from coppice_ldl import AAKNN, StructRF, experiment
    from conftest import make
    X, D = make(1000, 20)
    spec = {{"name": "s", "folds": 2, "datasets": [{{"name": "d", "X": X, "D": D}}]}}
    first = experiment({{**spec, "methods": [AAKNN()]}}, verbose=False)
    threading.Timer({after}, lambda: print("ready", flush=True)).start()
    experiment({{**spec, "methods": [StructRF(trees=10000, max_depth=60, min_samples=2)]}}, verbose=False)
"""


@pytest.mark.skipif(not LINUX, reason="it needs /proc")
@pytest.mark.parametrize(
    ("code", "after"),
    [
        (STUDY.format(after=1.0), "experiment"),
        (FIT.format(rows=400000, after=0.05), "upload"),
        (FIT.format(rows=3000, after=1.0), "fit"),
        (PREDICT.format(after=0.5), "download"),
    ],
)
def test_kill_leaves_nothing(code: str, after: str, tmp_path: pathlib.Path) -> None:
    shared = set(os.listdir("/dev/shm"))
    child = start(code, TMPDIR=str(tmp_path))
    assert child.stdout is not None and child.stderr is not None
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    assert processes(tmp_path), "the interpreter has no process of the binary"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    child.stderr.close()
    until(lambda: not processes(tmp_path), 10)
    made = set(os.listdir("/dev/shm")) - shared  # other programs of the machine use the folder, too
    assert not [name for name in made if not name.startswith(("joblib_", "coppice-sim"))]
    until(lambda: os.listdir(tmp_path) == [], 10)


def test_a_report_keeps_its_folder(tmp_path, monkeypatch) -> None:
    X, D = make(60, 4, 3)
    spec = {"name": "s", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": ["aa-knn"]}
    report = coppice_ldl.experiment(spec, verbose=False)
    want = report.table(no_times=True)
    monkeypatch.chdir(tmp_path)  # the next call starts another process
    AAKNN().fit(X, D)
    AAKNN().fit(X, D)
    assert report.table(no_times=True) == want
    coppice_ldl.close()
    assert report.table(no_times=True) == want


@pytest.mark.skipif(not LINUX, reason="it needs /proc")
def test_calls_leave_no_descriptor(data) -> None:
    X, D = data
    _process.close()
    model = StructRF(trees=5).fit(X, D)
    before = descriptors()
    for _ in range(5):
        model.fit(X, D).predict(X)
        with pytest.raises(ValueError):
            StructRF(trees=-1).fit(X, D)
    assert descriptors() == before


def test_fork(data) -> None:
    X, D = data
    model = StructRF(trees=5, random_state=3).fit(X, D)
    want = model.predict(X)
    own = _process.current().child.pid
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = np.array_equal(model.predict(X), want) and np.array_equal(StructRF(trees=5, random_state=3).fit(X, D).predict(X), want)
            other = _process.current().child.pid != own
            os.write(into, b"y" if same and other else b"n")
        finally:
            os._exit(0)
    os.close(into)
    assert os.read(out, 1) == b"y"
    os.close(out)
    os.waitpid(child, 0)
    assert _process.current().child.pid == own, "the fork took the process of the parent"
    assert np.array_equal(model.predict(X), want)


def test_fork_does_not_keep_the_process(data) -> None:
    code = """
        import os, time
        from coppice_ldl import _process
        _process.run(["version"])
        print(_process.current().child.pid, flush=True)
        child = os.fork()
        if child == 0:
            time.sleep(60)
        print(child, flush=True)
        os.kill(os.getpid(), 9)
    """
    parent = start(code)
    assert parent.stdout is not None
    pid, child = int(parent.stdout.readline()), int(parent.stdout.readline())
    parent.wait()
    until(lambda: not alive(pid), 10)
    parent.stdout.close()
    os.kill(child, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if LINUX else True


def test_threads_call_at_once() -> None:
    def one(seed: int) -> str:
        X, D = make(150, seed=seed)
        model = StructRF(trees=20, random_state=seed).fit(X, D)
        assert metrics.kl(D, model.predict(X)) > 0
        return model.model_digest_

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(one, range(16)))
    assert together == [one(seed) for seed in range(16)]
    assert len(set(together)) == 16


def interrupt(code: str, **environment: str) -> None:
    """Check that code survives SIGINT in a fit within a second."""
    child = start(code, **environment)
    assert child.stdout is not None and child.stderr is not None
    assert child.stdout.readline() == "ready\n", child.stderr.read()
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    line = child.stdout.readline()
    took = time.monotonic() - began
    out, err = child.stdout.read(), child.stderr.read()  # communicate would lose what is in the buffer of stdout
    child.wait(60)
    assert line == "interrupted\n", err
    assert out == "alive\n", err
    assert took < 30, f"the interrupt took {took:.1f} s"  # a second at most on an idle machine


def test_interrupt() -> None:
    interrupt(
        """
        import threading
        from coppice_ldl import StructRF, SABFGS
        from conftest import make
        X, D = make(3000, 200)
        threading.Timer(1.5, lambda: print("ready", flush=True)).start()
        try:
            StructRF(trees=10000, max_depth=60, min_samples=2).fit(X, D)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        SABFGS().fit(X[:50, :3], D[:50])
        print("alive", flush=True)
        """
    )


def test_interrupt_on_cluster(server: str) -> None:
    interrupt(
        f"""
        import threading
        from coppice_ldl import Client, SABFGS, StructRF
        from conftest import make
        X, D = make(3000, 200)
        threading.Timer(2.5, lambda: print("ready", flush=True)).start()
        try:
            StructRF(trees=10000, max_depth=60, min_samples=2).fit(X, D, server={server!r}, name="interrupted")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert Client({server!r}).job("interrupted").state == "cancelled"
        print("alive", flush=True)
        """
    )


def test_killed_process(data) -> None:
    X, D = data
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        big, labels = make(3000, 200)
        fit = pool.submit(StructRF(**LONG).fit, big, labels)
        until(lambda: _process._current is not None and not _process._current.idle())
        time.sleep(0.5)
        os.kill(_process.current().child.pid, signal.SIGKILL)
        with pytest.raises(ProcessError, match="signal 9"):
            fit.result()
    assert StructRF(trees=2).fit(X, D).predict(X).shape == D.shape


def test_ignores_signals(data) -> None:
    X, D = data
    _process.run(["version"])
    child = _process.current().child.pid
    os.kill(child, signal.SIGINT)
    os.kill(child, signal.SIGHUP)
    StructRF(trees=2).fit(X, D)
    assert _process.current().child.pid == child


def test_environment(monkeypatch, tmp_path) -> None:
    _process.run(["version"])
    first = _process.current().child.pid
    monkeypatch.setenv("COPPICE_SEED", "7")
    monkeypatch.setenv("COPPICE_LABELS", "class")
    assert _process.current().child.pid == first
    X, D = make(60)
    assert StructRF(trees=2).fit(X, D).result_["seed"] == 1, "a variable changes what fit does"
    monkeypatch.setenv("COPPICE_SERVER", "127.0.0.1:1")
    with pytest.raises(coppice_ldl.UnavailableError, match="127.0.0.1:1"):
        coppice_ldl.Client().jobs()
    assert _process.current().child.pid != first
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("x,label_a,label_b\n" + "1,0.5,0.5\n2,0.4,0.6\n" * 10)
    assert coppice_ldl.datasets.load("one.csv").X.shape == (20, 1)


def test_other_version(monkeypatch, tmp_path) -> None:
    fake = tmp_path / "coppice"
    fake.write_text("#!/bin/sh\necho coppice 9.9.9\n")
    fake.chmod(0o755)
    monkeypatch.setenv("COPPICE_BINARY", str(fake))
    with pytest.raises(ProcessError, match=r"9\.9\.9.*needs coppice"):
        _process.run(["version"])
    monkeypatch.setenv("COPPICE_BINARY", str(tmp_path / "none"))
    with pytest.raises(ProcessError, match="cannot be started"):
        _process.run(["version"])


def test_errors() -> None:
    with pytest.raises(coppice_ldl.InputError) as caught:
        _process.run(["train", "--local", "-o", "json"])
    assert caught.value.kind == "usage"
    with pytest.raises(coppice_ldl.NotFoundError):
        _process.run(["predict", "--model", "none.model", "--data", "none.csv", "--out", "none.npz", "-o", "json"])
    with pytest.raises(coppice_ldl.UnavailableError, match="no coordinator answers"):
        _process.run(["job", "list", "-o", "json", "--server", "127.0.0.1:1"])
    assert issubclass(coppice_ldl.InputError, (ValueError, CoppiceError))
