"""Compare Coppice with PyLDL: measures, accuracy and time on the same folds.

    pip install -r python/compare/requirements.txt
    pip install coppice-ldl
    python python/compare/with_pyldl.py --data DIR --write docs/results.md

DIR has the files SJAFFE.mat, Yeast_spo5.mat and Movie.mat. The script prints a table in Markdown. With --write it also
replaces the text between the two markers in the page. The exit code is 1 if a measure differs by more than 1e-12.

PyLDL's packages contain the C sources of two modules that StructRF needs, but no compiled modules. The script compiles
them, which needs a C compiler.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import platform
import shlex
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Iterator, Optional

import numpy as np
from scipy.io import loadmat
from sklearn.model_selection import KFold

import coppice_ldl
import coppice_ldl.metrics

DATASETS = ("SJAFFE", "Yeast_spo5", "Movie")
# Names of the classes in PyLDL and in Coppice.
ALGORITHMS = {"AA-kNN": ("AA_KNN", "AAKNN"), "SA-BFGS": ("SA_BFGS", "SABFGS"), "StructRF": ("StructRF", "StructRF"), "LDLF": ("LDLF", "LDLForest")}
METHODS = {"pyldl": "PyLDL", "paper": "Coppice, `preset=\"paper\"`", "auto": "Coppice"}
# Names of measures in Coppice, and of the same measures in PyLDL.
MEASURES = {
    "kl": "kl_divergence",
    "euclidean": "euclidean",
    "sorensen": "sorensen",
    "chi2": "chi2",
    "fidelity": "fidelity",
    "intersection": "intersection",
    "chebyshev": "chebyshev",
    "clark": "clark",
    "canberra": "canberra",
    "cosine": "cosine",
    "spearman": "spearman",
    "jensen_shannon": "js_divergence",
    "zero_one": "zero_one_loss",
    "error_probability": "error_probability",
    "kendall": "kendall",
    "wave_hedges": "wave_hedges",
}
TOLERANCE = 1e-12
FOLDS = 10
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
PACKAGES = ("coppice-ldl", "python-ldl", "keras", "tensorflow-cpu", "numpy", "scipy", "scikit-learn")
BEGIN, END = "<!-- begin of the comparison with PyLDL -->", "<!-- end of the comparison with PyLDL -->"


@dataclass(frozen=True)
class Fit:
    """A training and a prediction on one fold."""

    dataset: str
    algorithm: str
    method: str
    fold: int
    one_thread: bool


@dataclass
class Outcome:
    """What a fit gave. `error` is empty if it ended in time.

    Times are (training, prediction) in seconds: elapsed time, and CPU time of the Python process and of Coppice's process.
    """

    elapsed: tuple[float, float] = (0, 0)
    cpu: tuple[float, float] = (0, 0)
    predicted: Optional[np.ndarray] = None
    error: str = ""


@dataclass
class Record:
    """What the table needs of an outcome."""

    fit: Fit
    elapsed: tuple[float, float]
    cpu: tuple[float, float]
    kl: float
    differences: dict[str, float]
    error: str
    load: float = float("nan")  # of the machine, over the last minute


# Data and measures.


def read(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and label distributions of a .mat file in float64."""
    arrays = loadmat(pathlib.Path(folder) / f"{name}.mat")
    return arrays["features"].astype(np.float64), normalized(arrays["labels"])


def normalized(D: np.ndarray) -> np.ndarray:
    """Return the rows in float64, divided by their sums."""
    D = np.asarray(D, dtype=np.float64)
    return np.asarray(D / D.sum(axis=1, keepdims=True))


def fold(rows: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the training and the test samples of a fold."""
    train, test = list(KFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(rows)))[number]
    return train, test


def differences(D: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return the greatest difference over samples between the libraries, for each measure.

    Samples for which PyLDL's Spearman correlation is NaN are skipped: all probabilities of the sample are equal.
    """
    import pyldl.metrics

    own = coppice_ldl.metrics.all_measures(D, predicted, clip="pyldl")
    found = {}
    for name, other in MEASURES.items():
        values = np.asarray(getattr(pyldl.metrics, other)(D, predicted, reduction=None), dtype=np.float64)
        differs = np.abs(own[name] - values)
        if name in ("spearman", "kendall"):
            differs = differs[~np.isnan(values)]
        found[name] = float(np.max(differs, initial=0))
    return found


# PyLDL.


def compile_modules(folder: str) -> None:
    """Compile the modules of PyLDL that its package has in C only into a folder, if they are missing."""
    import pyldl.algorithms
    from setuptools import Distribution, Extension

    sources = pathlib.Path(pyldl.algorithms.__path__[0])
    missing = [name for name in ("_tree", "_rbm") if importlib.util.find_spec(f"pyldl.algorithms.{name}") is None]
    modules = [Extension(name, [str(sources / f"{name}.c")], include_dirs=[np.get_include()]) for name in missing]
    command: Any = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = folder, os.path.join(folder, "objects")
    command.ensure_finalized()
    command.run()


def estimator(fit: Fit) -> Any:
    """Return the estimator of a fit. PyLDL's has its defaults."""
    other, own = ALGORITHMS[fit.algorithm]
    if fit.method == "pyldl":
        import pyldl.algorithms

        return getattr(pyldl.algorithms, other)(random_state=0)
    return getattr(coppice_ldl, own)(preset=fit.method, random_state=0, n_jobs=1 if fit.one_thread else None, verbose=False)


# A process that fits.


def coppice_process() -> Optional[int]:
    """Return the id of Coppice's process, a child of this one."""
    found = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    names = {int(pid): pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in found}
    return next((pid for pid, words in names.items() if b"library" in words), None)


def clocks(process: Optional[int]) -> tuple[float, float]:
    """Return the time, and the CPU time of this process and of Coppice's process, which Linux has as a clock."""
    child = time.clock_gettime((~process << 3) | 2) if process is not None else 0
    return time.perf_counter(), time.process_time() + child


def serve(pipe: multiprocessing.connection.Connection, folder: str, modules: str) -> None:
    """Answer each Fit with an Outcome. A fit on few samples comes first, which is not timed."""
    import pyldl.algorithms

    pyldl.algorithms.__path__.append(modules)
    data: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    warm = set()
    while True:
        fit: Optional[Fit] = pipe.recv()
        if fit is None:
            return
        if fit.dataset not in data:
            data[fit.dataset] = read(folder, fit.dataset)
        X, D = data[fit.dataset]
        train, test = fold(len(X), fit.fold)
        try:
            if (fit.method, fit.algorithm) not in warm:
                warm.add((fit.method, fit.algorithm))
                short = {"epochs": 1} if fit.method == "pyldl" and fit.algorithm == "LDLF" else {}
                first = estimator(fit)
                first.fit(X[train[:40], :10], D[train[:40]], **short)
                first.predict(X[test[:5], :10])
            pipe.send("ready")
            model = estimator(fit)
            process = coppice_process()
            times = [clocks(process)]
            model.fit(X[train], D[train])
            times.append(clocks(process))
            predicted = model.predict(X[test])
            times.append(clocks(process))
            elapsed, cpu = np.diff(times, axis=0).T.tolist()
            pipe.send(Outcome(tuple(elapsed), tuple(cpu), np.asarray(predicted)))
        except Exception as error:  # the other fits go on
            pipe.send(Outcome(error=f"{type(error).__name__}: {error}"))


class Fitter:
    """A process that fits, with one thread or with the default number of threads."""

    def __init__(self, folder: str, modules: str, one_thread: bool) -> None:
        self.folder, self.modules, self.one_thread = folder, modules, one_thread
        self.process: Any = None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        for name in VARIABLES:
            os.environ.pop(name, None)
            if self.one_thread:
                os.environ[name] = "1"
        self.process = context.Process(target=serve, args=(theirs, self.folder, self.modules), daemon=True)
        self.process.start()
        theirs.close()

    def fit(self, fit: Fit, limit: float) -> Outcome:
        """Fit, but end the process after `limit` seconds."""
        if self.process is None:
            self.start()
        self.pipe.send(fit)
        first = self.pipe.recv()
        if isinstance(first, Outcome):
            return first  # an error
        if not self.pipe.poll(limit):
            self.stop()
            return Outcome(error=f"more than {limit:g} s")
        outcome: Outcome = self.pipe.recv()
        return outcome

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


# The comparison.


def compare(options: argparse.Namespace, modules: str, say: Callable[[str], None]) -> list[Record]:
    """Return the records of all fits. A fit in the file of --results is not computed again."""
    known = {record.fit: record for record in recorded(options.results)}
    fitters = {one: Fitter(options.data, modules, one) for one in (True, False)}
    records: list[Record] = []
    for fit in plan(options):
        before = [r for r in records if replace(r.fit, fold=0, one_thread=True) == replace(fit, fold=0, one_thread=True)]
        if any(r.error for r in before):
            continue  # the other folds of the row are left out
        record = known.get(fit)
        if record is None:
            _, D = read(options.data, fit.dataset)
            outcome = fitters[fit.one_thread].fit(fit, options.limit)
            record = judged(fit, outcome, D[fold(len(D), fit.fold)[1]], os.getloadavg()[0])
            say(f"{fit}: {record.error or f'{record.elapsed[0]:.3f} s, CPU {record.cpu[0]:.3f} s'}; load {record.load:.1f}")
            if options.results:
                with open(options.results, "a") as file:
                    file.write(json.dumps(asdict(record)) + "\n")
        records.append(record)
    for fitter in fitters.values():
        fitter.stop()
    return records


def recorded(path: Optional[str]) -> list[Record]:
    """Return the records of a file, which may not exist yet."""
    if not path or not os.path.exists(path):
        return []
    with open(path) as file:
        found = [json.loads(line) for line in file]
    return [Record(**{**record, "fit": Fit(**record["fit"])}) for record in found]


def judged(fit: Fit, outcome: Outcome, truth: np.ndarray, load: float) -> Record:
    """Return the record of an outcome."""
    if outcome.predicted is None:
        return Record(fit, outcome.elapsed, outcome.cpu, 0, {}, outcome.error, load)
    predicted = normalized(outcome.predicted)
    kl = coppice_ldl.metrics.kl(truth, predicted, clip="pyldl")
    return Record(fit, outcome.elapsed, outcome.cpu, kl, differences(truth, predicted), "", load)


def plan(options: argparse.Namespace) -> Iterator[Fit]:
    """Yield the fits. A fit with default threads comes after the fit with one thread."""
    for algorithm in ALGORITHMS:
        for dataset in DATASETS:
            for method in METHODS:
                for number in range(folds_of(options.folds, dataset, algorithm)):
                    yield Fit(dataset, algorithm, method, number, True)
                    if number < folds_of(options.default_threads_folds, dataset, algorithm):
                        yield Fit(dataset, algorithm, method, number, False)


def folds_of(given: list[tuple[str, int]], dataset: str, algorithm: str) -> int:
    """Return how many folds are used: the least number that an option gives."""
    names = {"", dataset, algorithm, f"{dataset}/{algorithm}"}
    return int(min(number for name, number in given if name in names))


# The text.


def text_of(records: list[Record], command: str) -> str:
    """Return the section of the page."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    loads = [record.load for record in records]
    lines = [
        BEGIN,
        "",
        "<!-- not run: needs PyLDL and the datasets -->",
        "```",
        "pip install -r python/compare/requirements.txt",
        command,
        "```",
        "",
        f"- Versions: Python {platform.python_version()}, {versions}.",
        f"- Machine: {processor()}, {os.cpu_count()} cores, {platform.system()}.",
        f"- The load during the fits was {min(loads):.1f} to {max(loads):.1f}, with a median of {statistics.median(loads):.1f}.",
        "- Times are medians over folds in seconds, for training / prediction. CPU time is the sum over threads.",
        "",
        "| algorithm | dataset | library | folds | K-L | CPU, one thread | elapsed, one thread | elapsed, default threads |",
        "| --- | --- | --- | --: | --: | --: | --: | --: |",
    ]
    lines += [row_of(rows) for rows in grouped(records)]
    lines += ["", "The greatest difference between both libraries, over all samples of the predictions above:", ""]
    lines += ["| measure | in PyLDL | difference |", "| --- | --- | --: |"]
    lines += [f"| `{name}` | `{MEASURES[name]}` | {value:.1e} |" for name, value in greatest(records).items()]
    return "\n".join([*lines, "", END])


def grouped(records: list[Record]) -> list[list[Record]]:
    """Return the records of each row of the table."""
    rows: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        rows.setdefault((record.fit.algorithm, record.fit.dataset, record.fit.method), []).append(record)
    return list(rows.values())


def row_of(records: list[Record]) -> str:
    """Return a line of the table."""
    one = [r for r in records if r.fit.one_thread and not r.error]
    default = [r for r in records if not r.fit.one_thread and not r.error]
    errors = [r.error for r in records if r.error]
    kl = f"{statistics.mean(r.kl for r in one):.4f}".replace("0.", ".", 1) if one else errors[0]
    fit = records[0].fit
    times = [seconds([r.cpu for r in one]), seconds([r.elapsed for r in one]), seconds([r.elapsed for r in default])]
    return "| " + " | ".join([fit.algorithm, fit.dataset, METHODS[fit.method], str(len(one)), kl, *times]) + " |"


def greatest(records: list[Record]) -> dict[str, float]:
    """Return the greatest difference of each measure."""
    return {name: max((r.differences[name] for r in records if not r.error), default=0.0) for name in MEASURES}


def seconds(times: list[tuple[float, float]]) -> str:
    if not times:
        return ""
    return " / ".join(f"{statistics.median(part):.3g}" for part in zip(*times))


def processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def replaced(page: str, section: str) -> str:
    """Return the page with another section between the markers."""
    return page[: page.index(BEGIN)] + section + page[page.index(END) + len(END) :]


def folds_option(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    known = {"", *DATASETS, *ALGORITHMS, *(f"{d}/{a}" for d in DATASETS for a in ALGORITHMS)}
    if name not in known or not number.isdigit() or int(number) > FOLDS:
        raise argparse.ArgumentTypeError(f"{text!r}: want N, DATASET=N, ALGORITHM=N or DATASET/ALGORITHM=N, with N from 0 to {FOLDS}")
    return name, int(number)


def command_of(options: argparse.Namespace) -> str:
    """Return the command that computes everything again."""
    words = ["python", "python/compare/with_pyldl.py", "--data", "DIR"]
    for name, number in options.folds[1:]:
        words += ["--folds", f"{name}={number}".lstrip("=")]
    for name, number in options.default_threads_folds[1:]:
        words += ["--default-threads-folds", f"{name}={number}".lstrip("=")]
    words += ["--limit", f"{options.limit:g}"]
    return shlex.join([*words, *(["--write", options.write] if options.write else [])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder of the .mat files")
    folds = "use the first N of 10 folds; NAME is a dataset, an algorithm or DATASET/ALGORITHM"
    parser.add_argument("--folds", type=folds_option, action="append", default=[("", FOLDS)], metavar="[NAME=]N", help=folds)
    default_threads = "measure the time with default threads on the first N folds (default: 1)"
    parser.add_argument("--default-threads-folds", type=folds_option, action="append", default=[("", 1)], metavar="[NAME=]N", help=default_threads)
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="end a fit after this time (default: 600)")
    parser.add_argument("--results", metavar="FILE", help="append each fit to this file; a fit that the file has is not computed again")
    parser.add_argument("--write", metavar="PAGE", help="replace the section between the markers of this page")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for name in DATASETS:
        if not (pathlib.Path(options.data) / f"{name}.mat").is_file():
            parser.error(f"argument --data: {options.data} has no file {name}.mat: give the folder of the .mat files")
    page = None
    if options.write:
        if not os.path.isfile(options.write):
            parser.error(f"argument --write: there is no file {options.write}")
        page = pathlib.Path(options.write).read_text(encoding="utf-8")
        if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
            parser.error(f"argument --write: {options.write} must have the lines {BEGIN!r} and {END!r} once, in this order")
    with tempfile.TemporaryDirectory() as modules:
        compile_modules(modules)
        records = compare(options, modules, lambda line: print(line, file=sys.stderr, flush=True))
    if not records:
        parser.error("argument --folds: no fit is left")
    section = text_of(records, command_of(options))
    print(section)
    if page is not None:
        pathlib.Path(options.write).write_text(replaced(page, section), encoding="utf-8")
    return 1 if max(greatest(records).values()) > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
