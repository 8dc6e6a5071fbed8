"""A cluster: fits, jobs, models, datasets and experiments."""

from __future__ import annotations

import datetime
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from coppice_ldl import SABFGS, Client, ConflictError, CoppiceError, InputError, Job, JobTimeoutError, NotFoundError, StructRF, UnavailableError, binary, experiment
from coppice_ldl._options import ELSEWHERE, OPTIONS
from coppice_ldl._tables import COLUMNS, table
from conftest import cluster, make, until

pandas = pytest.importorskip("pandas")
LONG = {"trees": 10000, "max_depth": 60, "min_samples": 2}


@pytest.fixture
def client(server: str) -> Client:
    return Client(server)


def test_status(client: Client, server: str) -> None:
    status = client.status()
    assert [one["id"] for one in status["workers"]] == ["w1", "w2"]
    assert status["coordinators"][0]["http"] == server
    assert repr(client) == f"Client(server={server!r})"


@pytest.mark.parametrize("estimator", [StructRF(trees=5, random_state=3), SABFGS()], ids=["structrf", "sa-bfgs"])
def test_fit_is_the_local_fit(server: str, estimator: Any) -> None:
    X, D = make(100)
    local = type(estimator)(**estimator.get_params()).fit(X, D)
    far = estimator.fit(X, D, server=server)
    assert far is estimator
    assert far.model_digest_ == local.model_digest_
    assert far.predict(X).tobytes() == local.predict(X).tobytes()
    assert far.settings_ == local.settings_
    assert far.n_labels_ == 4 and far.n_features_in_ == 5
    for name in set(local.learning_curve_) - {"seconds"}:
        values = local.learning_curve_[name]
        assert np.array_equal(far.learning_curve_[name], values, equal_nan=True), name


def test_frame_and_missing_values_on_the_cluster(server: str) -> None:
    X, D = make(80)
    X[3, 1] = np.nan
    frame = pandas.DataFrame(X, columns=list("abcde"))
    D = pandas.DataFrame(D, columns=["p", "q", "r", "s"])
    local = SABFGS(missing="mean").fit(frame, D)
    far = SABFGS(missing="mean").fit(frame, D, server=server)
    assert far.model_digest_ == local.model_digest_
    assert list(far.feature_names_in_) == list("abcde") and list(far.label_names_) == list("pqrs")
    classes = np.where(D["p"] > D["q"], "yes", "no")
    local = SABFGS(labels="class").fit(frame.fillna(0), classes)
    far = SABFGS(labels="class").fit(frame.fillna(0), classes, server=server)
    assert far.model_digest_ == local.model_digest_
    assert list(far.predict_class(frame.fillna(0))) == list(local.predict_class(frame.fillna(0)))


def test_data_are_uploaded_once(client: Client, server: str) -> None:
    X, D = make(90, seed=11)
    before = set(client.datasets()["digest"])
    first = StructRF(trees=3).fit(X, D, server=server, name="once-a")
    datasets = client.datasets()
    assert len(set(datasets["digest"]) - before) == 1
    second = StructRF(trees=4).fit(np.asfortranarray(X), D.tolist(), server=server, name="once-b")
    assert second.model_digest_ != first.model_digest_
    assert list(client.datasets()["name"]) == list(datasets["name"])
    assert client.job("once-a")["dataset"] == client.job("once-b")["dataset"]
    X[0, 0] += 1
    StructRF(trees=3).fit(X, D, server=server)
    assert len(client.datasets()) == len(datasets) + 1


def test_jobs(client: Client, server: str) -> None:
    X, D = make(70)
    job = client.submit(StructRF(trees=4), X, D, name="listed")
    assert job.name == "listed" and job.wait(verbose=False) is job and job.state == "done"
    jobs = client.jobs()
    assert isinstance(jobs, pandas.DataFrame) and "listed" in set(jobs["name"])
    row = jobs[jobs["name"] == "listed"].iloc[0]
    assert row["state"] == "done" and row["job.algorithm"] == "structrf" and row["id"] == job["id"]
    assert "listed" in set(client.jobs(state="done")["name"])
    assert len(client.jobs(state="paused")) == 0
    assert set(job) >= {"id", "name", "state", "result"} and len(job) == len(list(job)) and "nothing" not in job
    assert client.job(job["id"]).name == client.job("listed").name == "listed"
    assert repr(job) == "<Job listed: done>"
    html = job._repr_html_()
    assert html.startswith("<table>") and "<td>listed</td>" in html and "<td>kl</td>" in html
    want = StructRF(trees=4).fit(X, D)
    assert job.model().model_digest_ == want.model_digest_
    assert np.array_equal(job.learning_curve()["step"], want.learning_curve_["step"])
    with pytest.raises(NotFoundError, match='there is no job "unlisted"'):
        client.job("unlisted")


def test_pause_resume_cancel_delete(client: Client) -> None:
    job = client.submit(StructRF(**LONG), *make(3000, 100), name="long")
    assert job.pause().state == "paused"
    assert job.share().state == "paused"  # without TLS everything is shared already
    assert client.job("long").state == "paused"
    assert job.resume().state in ("queued", "running")
    with pytest.raises(ConflictError, match="running|queued"):
        job.delete()
    assert job.cancel().state == "cancelled"
    with pytest.raises(CoppiceError, match="job long was cancelled"):
        job.wait(verbose=False)
    with pytest.raises(NotFoundError, match="model"):
        job.model()
    job.delete()
    with pytest.raises(NotFoundError, match="deleted"):
        job.refresh()


def test_wait_ends_in_time(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    job = client.submit(StructRF(**LONG), *make(3000, 100), name="waited-for")
    until(lambda: job.refresh().state == "running")
    for seconds in (0, 0.5, np.float32(0.25)):
        began = time.monotonic()
        with pytest.raises(TimeoutError, match="job waited-for is still running"):
            job.wait(seconds)
        assert seconds <= time.monotonic() - began < seconds + 20
    assert capfd.readouterr().err == ""
    job.pause()
    with pytest.raises(TimeoutError, match=r'job waited-for is still paused; to resume it: Client\.job\("waited-for"\)\.resume\(\)$'):
        job.wait(3)
    assert capfd.readouterr().err == 'waited-for: job waited-for is paused; Client.job("waited-for").resume() lets it continue\n'
    with pytest.raises(TimeoutError):
        job.wait(1, verbose=False)
    assert capfd.readouterr().err == ""
    assert job.resume().refresh().state in ("queued", "running")
    for wrong in (-1, float("nan"), "3", True):
        with pytest.raises(InputError, match="timeout=.*: want seconds from 0"):
            job.wait(wrong)
    job.cancel()
    with pytest.raises(CoppiceError, match="cancelled"):  # not a timeout
        job.wait(0)


def test_wait_for_a_cluster_that_does_not_answer(tmp_path: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with cluster(tmp_path, "--coordinators", "1", "--workers", "1") as server:
        job = Client(server).submit(StructRF(**LONG), *make(3000, 100), name="lonely")
        until(lambda: job.refresh().state == "running")
        found = subprocess.run(["pgrep", "-f", f" coordinator .*{tmp_path}"], capture_output=True, text=True, check=True).stdout.split()
        stop = threading.Timer(1, lambda: [os.kill(int(one), signal.SIGSTOP) for one in found])
        stop.start()
        try:
            with pytest.raises(TimeoutError, match="the cluster does not answer; when it last did, job lonely was running"):
                job.wait(12)
            assert "lonely: waiting for the cluster: no coordinator answers" in capfd.readouterr().err
            with pytest.raises(UnavailableError, match="no coordinator answers"):
                job.wait(60)
            for seconds in (0, 0.5):
                began = time.monotonic()
                with pytest.raises(JobTimeoutError, match="no coordinator (answers|has answered within 1s)"):
                    job.wait(seconds)
                assert time.monotonic() - began >= seconds
        finally:
            stop.join()
            for one in found:
                os.kill(int(one), signal.SIGCONT)
        assert job.refresh().state in ("queued", "running")


def test_fit_says_why_it_waits(tmp_path: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with cluster(tmp_path, "--coordinators", "1", "--workers", "1") as server:
        subprocess.run(["pkill", "-STOP", "-f", f" worker .*{tmp_path}"], check=True)
        fit = ThreadPoolExecutor().submit(lambda: StructRF(trees=3).fit(*make(60), server=server, name="unserved"))
        seen = ""

        def said(text: str) -> bool:
            nonlocal seen
            seen += capfd.readouterr().err
            return text in seen

        until(lambda: said("structrf: job unserved waits: "))
        Client(server).job("unserved").pause()
        until(lambda: said('structrf: job unserved is paused; Client.job("unserved").resume() lets it continue\n'))
        Client(server).job("unserved").cancel()
        with pytest.raises(CoppiceError, match="job unserved was cancelled"):
            fit.result(60)
        assert seen.count(" waits: ") == 1, seen


INTERRUPTED = """
    import sys
    import coppice_ldl
    from conftest import make
    X, D = make(3000, 100)
    coppice_ldl.Client({server!r}).status()  # the process of coppice has started
    print("ready", flush=True)
    coppice_ldl.StructRF(**{LONG}).fit(X, D, server={server!r}, name={name!r})
"""


@pytest.mark.parametrize("gap", [0.0, 0.001, 0.05, 0.5], ids=str)
@pytest.mark.parametrize("after", [0.05, 1.0], ids=["early", "late"])
def test_two_interrupts_cancel_the_job(client: Client, server: str, gap: float, after: float) -> None:
    """The first comes while the data are sent, or while the job runs. The second ends the wait for the cancellation."""
    name = f"interrupted-{gap}-{after}"
    code = textwrap.dedent(INTERRUPTED.format(server=server, LONG=LONG, name=name))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=os.path.dirname(__file__))
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        if after >= 1:
            until(lambda: name in set(client.jobs()["name"]))
        else:
            time.sleep(after)
        child.send_signal(signal.SIGINT)
        time.sleep(gap)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=60)[1]
        assert "KeyboardInterrupt" in said and child.returncode == -signal.SIGINT, said
    finally:
        child.kill()
        child.wait()
    time.sleep(1)  # a submission may be under way

    def states() -> dict[str, str]:
        return {one["name"]: one["state"] for one in client.jobs().to_dict("records")}

    until(lambda: states().get(name, "cancelled") == "cancelled")
    assert after < 1 or name in states()


def test_an_interrupt_leaves_a_job_of_another(client: Client, server: str) -> None:
    job = client.submit(StructRF(**LONG), *make(3000, 100), name="of-another")
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED.format(server=server, LONG=LONG, name=job.name))],
        stdout=subprocess.PIPE,
        text=True,
        cwd=os.path.dirname(__file__),
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        assert job.refresh().state in ("queued", "running")
    finally:
        child.kill()
        child.wait()
        job.cancel()


def test_submit(client: Client) -> None:
    X, D = make(75, seed=5)
    estimator = StructRF(trees=4, random_state=9)
    crossed = client.submit(estimator, X, D, name="crossed", folds=3).wait(verbose=False)
    assert len(crossed["result"]["folds"]) == 3
    assert not hasattr(estimator, "model_")
    client.import_dataset(X, D, name="seventy-five", verbose=False)
    named = client.submit(estimator, "seventy-five", name="named").wait(verbose=False)
    assert named.model().model_digest_ == estimator.fit(X, D).model_digest_
    assert named["dataset"] == "seventy-five"
    with pytest.raises(NotFoundError, match='there is no dataset "seventy-six"'):
        client.submit(estimator, "seventy-six")


def test_submit_refuses_what_it_cannot_use(client: Client) -> None:
    X, D = make(60, seed=21)
    client.import_dataset(X, D, name="refusals", verbose=False)
    jobs = len(client.jobs())
    for wrong in ("structrf", StructRF, None, {"algorithm": "structrf"}):
        with pytest.raises(TypeError, match=r"submit: .*(is not an estimator, such as StructRF\(\)|give an estimator: StructRF\(\))"):
            client.submit(wrong, X, D)
    for given in ({"labels": "class"}, {"missing": "mean"}, {"normalize": True}, {"labels": "age", "sigma": 2.0}, {"range": (0, 3)}):
        with pytest.raises(InputError, match=f"the dataset refusals was imported with its own {', '.join(given)}; leave out what the estimator says"):
            client.submit(SABFGS(**given), "refusals")
    for options, text in (
        ({"server": "a"}, "submit: there is no option server; the client has it"),
        ({"token_file": None}, "no option token_file; the client has it"),
        ({"data": "x.csv"}, "no option data; give X"),
        ({"algorithm": "rf"}, "no option algorithm; the class of the estimator says it"),
        ({"set": "trees=3"}, "no option set; give hyperparameters to the estimator"),
        ({"seed": 3}, "no option seed; give random_state to the estimator"),
        ({"fold_sed": 3}, "no option fold_sed; did you mean fold_seed?"),
        ({"zzz": 3}, "no option zzz; the options are audit, "),
    ):
        with pytest.raises(TypeError, match=re.escape(text)):
            client.submit(SABFGS(), X, D, **options)
    for call, option in ((client.jobs, "sate"), (client.models, "ower"), (client.jobs, "server")):
        with pytest.raises(TypeError, match=f"(jobs|models): there is no option {option}; "):
            call(**{option: 1})
    with pytest.raises(TypeError, match="import_dataset: there is no option label; did you mean labels?"):
        client.import_dataset(X, D, name="never", label="class")
    assert len(client.jobs()) == jobs


@pytest.mark.parametrize("command", list(OPTIONS))
def test_options_are_flags(command: str) -> None:
    """Each option is a flag of its command, and each flag is an option or has another place."""
    shown = subprocess.run([binary(), *command.split(), "--help-all"], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        shown = subprocess.run([binary(), *command.split(), "--help"], capture_output=True, text=True, check=True)
    found = {one.replace("-", "_") for one in re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", shown.stdout, re.MULTILINE)}
    options = set(OPTIONS[command])
    assert options <= found
    elsewhere = set(ELSEWHERE[command])
    general = {"help", "help_all", "output", "config", "version", "server", "context", "token_file", "ca_file", "tls_dir", "name"}
    assert found - options - general <= elsewhere <= found


def test_tables(client: Client, tmp_path: Any) -> None:
    """An empty table has the columns of a full table, and times are datetimes."""
    before = pandas.Timestamp.now(tz="UTC").floor("s")
    job = client.submit(SABFGS(), *make(61), name="timed").wait(verbose=False)
    spec = {"name": "tabled", "folds": 2, "datasets": [{"name": "d", "X": make(62)[0], "D": make(62)[1]}], "methods": [SABFGS()]}
    experiment(spec, server=client._where[0].partition("=")[2], verbose=False)
    full = {"jobs": client.jobs(), "models": client.models(), "datasets": client.datasets(), "experiments": client.experiments()}
    times = {"jobs": ["submitted", "started", "ended", "running_since"], "models": ["time"], "datasets": ["imported"], "experiments": ["submitted"]}
    for kind, shown in full.items():
        empty = table(kind, [])
        assert len(empty) == 0 and len(shown) > 0 and set(COLUMNS[kind]) == set(empty.columns) <= set(shown.columns)
        for name in times[kind]:
            assert str(empty[name].dtype).endswith(", UTC]") and str(shown[name].dtype).endswith(", UTC]")
    raw = client._ask("job list")
    assert set(COLUMNS["jobs"]) <= set(pandas.json_normalize(raw).columns), "no column is invented"
    row = full["jobs"].set_index("name").loc["timed"]
    assert before <= row["submitted"] <= row["ended"] <= pandas.Timestamp.now(tz="UTC")
    assert (job.submitted, job.started, job.ended) == (row["submitted"], row["started"], row["ended"])
    assert isinstance(job["submitted"], int) and isinstance(job.submitted, datetime.datetime)
    paused = client.submit(StructRF(**LONG), *make(3000, 100), name="paused").pause()
    assert paused.ended is None and pandas.isna(client.jobs().set_index("name").loc["paused", "ended"])
    paused.cancel()
    assert list(client.jobs(state="paused").columns) == list(table("jobs", []).columns)
    assert isinstance(job, Job)


def test_a_folder_is_no_experiment_of_the_cluster(server: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPPICE_SERVER", server)
    X, D = make(40)
    spec = {"name": "both", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [SABFGS()]}
    experiment(spec, server=server, verbose=False)
    assert len(Client().experiment("both").runs) == 2
    monkeypatch.chdir(tmp_path)
    experiment({**spec, "methods": [StructRF(trees=2)]}, folder="both", verbose=False)
    assert set(Client(server).experiment("both").runs["method"]) == {"sa-bfgs"}
    with pytest.raises(InputError, match="the working directory has both, too; give server or context to Client"):
        Client().experiment("both")


def test_a_failed_call_leaves_no_job(client: Client, server: str) -> None:
    X, D = make(60)
    jobs, datasets = len(client.jobs()), len(client.datasets())
    with pytest.raises(InputError, match='iterations: "-3" is not a whole number'):
        SABFGS(iterations=-3).fit(X + 77, D, server=server)
    with pytest.raises(InputError, match="row 0 .*the labels sum to 2"):
        SABFGS().fit(X, D * 2, server=server)
    with pytest.raises(InputError, match="row 0 .*the labels sum to 2"):
        client.submit(SABFGS(), X, D * 2)
    assert (len(client.jobs()), len(client.datasets())) == (jobs, datasets)
    SABFGS().fit(X, D, server=server, name="taken")
    with pytest.raises(ConflictError, match="taken.*already exists"):
        SABFGS(iterations=3).fit(X, D, server=server, name="taken")
    with pytest.raises(UnavailableError, match="no coordinator answers"):
        Client("127.0.0.1:1").jobs()


def test_models(client: Client, server: str) -> None:
    X, D = make(65)
    fitted = StructRF(trees=4).fit(X, D, server=server, name="kept")
    models = client.models()
    assert isinstance(models, pandas.DataFrame)
    assert models.set_index("name").loc["kept", "digest"] == fitted.model_digest_
    again = client.model("kept")
    assert type(again) is StructRF and np.array_equal(again.predict(X), fitted.predict(X))
    client.delete_model("kept")
    assert "kept" not in set(client.models()["name"])
    with pytest.raises(NotFoundError):
        client.model("kept")


def test_datasets(client: Client, tmp_path: Any) -> None:
    X, D = make(55, seed=8)
    info = client.import_dataset(pandas.DataFrame(X, columns=list("abcde")), D, name="fifty-five", verbose=False)
    assert (info["samples"], info["features"], info["labels"]) == (55, 5, 4)
    row = client.datasets().set_index("name").loc["fifty-five"]
    assert row["samples"] == 55 and row["digest"] == info["digest"]
    file = tmp_path / "ages.csv"
    file.write_text("height,age\n" + "".join(f"{100 + i},{20 + i % 5}\n" for i in range(30)))
    ages = client.import_dataset(file, name="ages", labels="age", label_columns="age", sigma=2, range="15:30", verbose=False)
    assert ages["labels"] == 16 and ages["features"] == 1
    classes = client.import_dataset(X, ["a", "b", "c", "b", "a"] * 11, name="classes", labels="class", verbose=False)
    assert classes["labels"] == 3
    with pytest.raises(InputError, match="row 2, feature 0"):
        X[2, 0] = np.inf
        client.import_dataset(X, D, name="bad", verbose=False)
    client.delete_dataset("ages")
    assert {"fifty-five", "classes"} <= set(client.datasets()["name"]) and not {"ages", "bad"} & set(client.datasets()["name"])
    with pytest.raises(NotFoundError, match="ages"):
        client.delete_dataset("ages")


def test_experiments(client: Client, server: str) -> None:
    X, D = make(60)
    spec = {"name": "small", "folds": 3, "datasets": [{"name": "sixty", "X": X, "D": D}], "methods": [SABFGS(), StructRF(trees=3)]}
    report = experiment(spec, server=server, verbose=False)
    assert len(report.runs) == 6
    listed = client.experiments().set_index("name")
    assert listed.loc["small", "runs_done"] == 6
    again = client.experiment("small")
    assert again.table(no_times=True) == report.table(no_times=True)
    html = again._repr_html_()
    assert html.startswith("<div>") and "sixty" in html
    with pytest.raises(NotFoundError, match="the cluster has no experiment 'large'"):
        client.experiment("large")


def test_lists_without_pandas(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    want = client.datasets()
    monkeypatch.setitem(sys.modules, "pandas", None)
    found = client.datasets()
    assert isinstance(found, list) and [one["name"] for one in found] == list(want["name"])


def test_no_progress_where_nothing_is_asked(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.submit(StructRF(trees=3), *make(60), name="silent").wait()
    assert capfd.readouterr() == ("", "")
