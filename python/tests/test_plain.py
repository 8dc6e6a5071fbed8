"""Texts that the binary stores have no places. They too are in the words of Python."""

from __future__ import annotations

import pathlib
import re

import pytest

import coppice_ldl
from coppice_ldl import AAKNN, MLPRegression
from coppice_ldl._texts import plain, text_of
from conftest import make

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("nothing here", "nothing here"),
        ("the labels are distributions; --range makes labels numeric", "the labels are distributions; `range` makes labels numeric"),
        ("give --labels age with --sigma 2 and --range LOW:HIGH", 'give labels="age" with sigma=2 and range=(LOW, HIGH)'),
        ("2 runs ended; --record-again repeats them", "2 runs ended; `record_again` repeats them"),
        ("read it with --set lambda=0.5, or --threads", "read it with lambda_=0.5, or `n_jobs`"),
        ("place 1 in the queue: at most 4 jobs run at once (coppice coordinator --jobs), now a", "place 1 in the queue: at most 4 jobs run at once (coppice coordinator --jobs), now a"),
        ("start a worker: coppice worker --join a:1,b:2 --dir DIR --tls-dir CERTS", "start a worker: coppice worker --join a:1,b:2 --dir DIR --tls-dir CERTS"),
        ("start a coordinator, or cancel the job: coppice job cancel a-1", 'start a coordinator, or cancel the job: Client.job("a-1").cancel()'),
        ("to resume it: coppice job resume a --server 127.0.0.1:7100", 'to resume it: Client.job("a").resume()'),
        ("import dataset d again (coppice dataset import), or wait", "import dataset d again (import_dataset), or wait"),
        ("coppice experiment run SPEC records the list; --missing drop leaves them out", 'experiment records the list; missing="drop" leaves them out'),
        ("/data/--labels age", "/data/--labels age"),
        ("round 0: 5 neighbours", "5 neighbours"),
        ("round 7: not finite", "round 7: not finite"),
    ],
)
def test_plain(text: str, want: str) -> None:
    assert plain(text) == want
    assert text_of([text]) == want


def test_failed_runs_and_notes(tmp_path: pathlib.Path) -> None:
    """A failed run and the note about missing records name arguments."""
    X, D = make(40, 4, 3)
    spec = {"name": "e", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [MLPRegression(), AAKNN()]}
    with pytest.warns(UserWarning, match="`range` makes labels numeric"):
        report = coppice_ldl.experiment(spec, folder=tmp_path, verbose=False)
    assert "`range` makes" in [text for text in report.runs["error"] if isinstance(text, str)][0]
    with pytest.warns(UserWarning) as told:
        coppice_ldl.experiment(spec, folder=tmp_path, record="curve", verbose=False)
    texts = [str(one.message) for one in told]
    assert any("`record_again` repeats them" in text for text in texts) and not any("--" in text for text in texts), texts


# Texts of the sources that no call of the library can show, by the begin of their path, and why.
ELSEWHERE = {
    "experiment/figure/style.go": "the style sheet of figures",
    "experiment/report/html.go": "the style sheet of reports",
    "client/contexts": "commands about contexts show them",
    "coordinator/config.go": "a coordinator shows them when it starts",
    "coordinator/coordinator.go": "the log of a coordinator",
    "client/outage": "advice to operators of a cluster",
    "coordinator/health.go": "the log of a coordinator",
    "coordinator/members": "commands about coordinators show them",
    "coordinator/observe.go": "commands about coordinators show them",
    "coordinator/peers.go": "a coordinator shows them when it starts",
    "coordinator/start.go": "the log of a coordinator",
    "coordinator/store": "a coordinator shows them when it starts",
    "coordinator/dispatch/view.go": "coppice cluster shows why a worker is idle",
    "dataset/inspect/profile.go": "coppice dataset inspect shows hints",
    "dataset/inspect/readings.go": "coppice dataset inspect tries ways to read a file",
    "dataset/write/write.go": "coppice dataset convert and generate name the flags that read a file",
    "experiment/command.go": "the command that trains a failed run alone",
    "experiment/overview": "coppice experiment watch",
    "internal/certs/authority.go": "coppice certs",
    "internal/certs/listen.go": "a process that listens shows it",
    "internal/certs/source.go": "a process that has a certificate shows it",
    "job/spec/resolve.go": "the documentation of keys of a spec",
    "job/local/local.go": "the library gives no limit of memory",
    "protocol/rights": "the table of requests in the documentation",
    "protocol/timeouts.go": "a table for operators",
    "worker": "a worker shows it, and its log",
    "algorithms/kit/fields/fields.go": "a flag of a file, which is a byte",
    "dataset/matfile/array.go": "a flag of a file, which is a word",
    "protocol/protocol.go": "a flag of a message, which is a byte",
}
# The files of commands that the library runs, below cmd. The other files belong to commands that it does not run.
COMMANDS = (
    *("cli/app", "cli/errors", "cli/flags", "cli/outfile", "connect/connect", "dataflags/dataflags", "progress/progress"),
    *("jobcmd/cmd", "jobcmd/curve", "jobcmd/show", "jobcmd/specflags", "jobcmd/submit"),
    *("datasetcmd/fetch", "datasetcmd/write", "publicsets/fetch", "publicsets/list", "experimentcmd/cmd", "experimentcmd/run", "experimentcmd/show"),
    *("modelcmd/evaluate", "modelcmd/measures", "modelcmd/modelfile", "modelcmd/predict", "traincmd/train"),
    *("modelcmd/export", "modelcmd/verify"),
)
# Flags of commands that operate a cluster. They follow the name of their command.
OPERATED = re.compile(r"coppice (coordinator|worker|certs client|token create)( [A-Z]+)?( --[a-z-]+)|give --slots, --memory and --kept-memory to coppice worker|--memory SIZE|--metrics-token-file|start the server with --allow-host|/DIGEST --out FILE|start it with --join-cluster")


def code_of(path: pathlib.Path) -> str:
    """Return a source without the lines of comments, in which a text that continues on the next line is one text."""
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("//"))
    return re.sub(r'" ?\+\n\s*"', "", "\n".join(lines))


def texts_of_sources() -> list[tuple[str, str]]:
    """Return the texts of the sources that have words, with their files. A text of one word is the name of a flag."""
    found = []
    for command in COMMANDS:
        path = ROOT / "cmd" / f"{command}.go"
        code = re.sub(r"`[^`\n]*`", "", code_of(path))
        found += [(path.name, text) for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code) if " " in text.strip()]
    for folder in ("dataset", "job", "experiment", "engine", "algorithms", "coordinator", "client", "protocol", "internal/certs", "worker"):
        for path in sorted((ROOT / folder).rglob("*.go")):
            name = path.relative_to(ROOT).as_posix()
            if name.endswith("_test.go") or any(name.startswith(begin) for begin in ELSEWHERE):
                continue
            for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`', code_of(path)):
                whole = text[0] or text[1]
                if " " in whole.strip():
                    found.append((name, whole))
    return found


def test_texts_of_sources() -> None:
    """No text of the sources shows a flag of the command line in Python, neither by its name nor as the word."""
    texts = texts_of_sources()
    assert len(texts) > 2000
    wrong = []
    for name, text in texts:
        said = OPERATED.sub("", plain(text))
        if re.search(r"(?<![\w-])--[a-z]", said) or re.search(r"\bflags?\b|command line", said):
            wrong.append(f"{name}: {said}")
    assert not wrong, "\n".join(wrong)
