"""The progress of a long call."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
import warnings
from typing import Any, Optional, Union

import numpy as np

from ._errors import InputError
from ._texts import notes_of, plain

QUIET = 2.0  # seconds; a call that ends sooner shows nothing


class Progress:
    """The progress bar of a call, which reads the output of ``-o jsonl``.

    Parameters
    ----------
    title : str
    verbose : bool or "auto"
        False shows nothing. "auto" shows a bar on a terminal and in a notebook. True shows one everywhere. Unless it is False, a
        line on the standard error says why a call waits: a paused job, a job without a worker, or a cluster that does not answer.
    job : str
        Name of the job on a cluster.

    Attributes
    ----------
    result : dict
        The result of the command.
    warnings : list of str
        Warnings of the command.
    """

    def __init__(self, title: str, verbose: Union[bool, str], job: str = "") -> None:
        if isinstance(verbose, str) and verbose != "auto" or not isinstance(verbose, (str, int, np.integer, np.bool_)):
            raise InputError(f'verbose={verbose!r}: want True, False or "auto"')
        self.title = title
        self.job = job
        self.lock = threading.Lock()  # of what is written
        self.closed = False
        self.verbose = verbose if isinstance(verbose, str) else bool(verbose)
        self.said = ""
        self.reason = ""  # why the job does not continue, in a word
        self.waits = ""  # and in a sentence
        self.timer: Optional[threading.Timer] = None
        self.shown = sys.stderr is not None and (_visible() if self.verbose == "auto" else bool(verbose))
        self.began = time.monotonic()
        self.bar: Any = None
        self.percent = False  # True if the progress is of an experiment, in percent
        self.runs = 0  # of the experiment
        self.last = 0.0
        self.at: Optional[str] = None  # the last line that could be shown, if there is no bar
        self.reached = 0.0  # the part of the bar that was full, from 0 to 1
        self.total: Optional[int] = None  # the last total that was known
        self.most = 0  # the largest step, if no total is known
        self.rest = ""  # the begin of a line
        self.result: dict[str, Any] = {}
        self.warnings: list[str] = []

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], *_: object) -> None:
        self._wait({})
        with self.lock:
            self.closed = True
        if self.bar is None:
            if self.last:
                ended = "done" if kind is None else "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
                at = f"{self.runs} of {self.runs} runs" if self.percent and kind is None else self.at
                write(f"{self.title}: {ended} after {time.monotonic() - self.began:.0f} s{', ' if at else ''}{at}")
            return
        if kind is None:  # early stopping is success too, and the bar ends full
            self.bar.n = (self.bar.total if self.percent else self.bar.n) or 1
            self._of(self.bar.n)
            if self.percent:
                self.bar.set_postfix_str(f"{self.runs} of {self.runs} runs", refresh=False)
            self.bar.refresh()
        self.bar.close()

    def line(self, text: str) -> None:
        """Take a part of the standard output of the command. A long line comes in several parts."""
        whole, found, rest = (self.rest + text).rpartition("\n")
        self.rest = rest
        for one in whole.split("\n") if found else ():
            value = json.loads(one)
            if "state" in value:
                self._wait(value)
            if "result" in value:
                self.result = value["result"]
            elif "progress" in value:
                self._put(value["progress"])

    def _wait(self, job: dict[str, Any]) -> None:
        """Say why a job does not continue: at once if it is paused, and otherwise after two seconds."""
        paused = job.get("state") == "paused"
        reason = "paused" if paused else job.get("waiting_for", "")
        self.waits = plain(job.get("waiting", ""))
        if reason == self.reason:
            return
        self.reason = reason
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if paused:
            self._say(f'job {self.job} is paused; Client.job("{self.job}").resume() lets it continue')
        elif reason:
            self.timer = threading.Timer(QUIET, lambda: self._say(f"job {self.job} waits: {self.waits}"))
            self.timer.daemon = True
            self.timer.start()
        else:
            self.said = ""  # a later wait is told again

    def note(self, text: str) -> None:
        """Take lines of the standard error of the command."""
        for kind, said in notes_of(text):
            if kind in ("warning", "note"):
                self.warnings.append(said)
            elif kind == "waiting":
                self._say(f"waiting for the cluster: {said}; asking again")

    def warn(self) -> None:
        """Pass on the warnings of the command to the caller of the function that calls this."""
        for note in self.warnings:
            warnings.warn(note, stacklevel=3)

    def _say(self, text: str) -> None:
        """Write a line to the standard error once, unless verbose is False. Without it, a user would not know why a call takes long."""
        with self.lock:
            if self.closed or self.verbose is False or text == self.said or sys.stderr is None:
                return
            self.said = text
            if self.bar is not None:
                self.bar.clear()
            write(f"{self.title}: {text}")

    def _put(self, at: dict[str, Any]) -> None:
        """Show the progress of a training, or of an experiment."""
        if "runs" in at:
            self.percent, self.runs = True, at["runs"]
            more = [f"{at['runs_done']} of {at['runs']} runs"]
            more += [f"{at['seconds_left']:.0f} s left"] if at.get("seconds_left") else []
            more += [f"waits: {plain(at['waiting'])}"] if at.get("waiting") else []
            self._show(100 * at["runs_done"] // max(1, at["runs"]), 100, ", ".join(more))
            return
        loss = at.get("loss", -1)
        more = ([f"K-L {loss:.5f}"] if loss >= 0 else []) + ([at["phase"]] if at.get("phase") else [])
        self._show(at.get("step", 0), at.get("steps") or at.get("most_steps") or None, " ".join(more))

    def _show(self, step: int, total: Optional[int], more: str) -> None:
        """Show how far the call is: `step` of `total` steps, or percent of an experiment."""
        now = time.monotonic()
        total = self.total = total or self.total
        step = self._forward(step, total)
        if not self.shown or sys.stderr is None or now - self.began < QUIET:
            return
        if self.bar is None:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-not-found, import-untyped, unused-ignore]
            except ImportError:
                parts = ([] if self.percent else [f"step {step}"]) + ([more] if more else [])
                self.at = ", ".join(parts)
                if now - self.last >= QUIET:
                    self.last = now
                    write(f"{self.title}: {', '.join(([f'{100 * step / total:.0f} %'] if total else []) + parts)}")
                return
            self.bar = tqdm(total=total, desc=self.title, unit="%" if self.percent else "step")
        self.bar.n = step
        self._of(total)
        self.bar.set_postfix_str(more)

    def _forward(self, step: int, total: Optional[int]) -> int:
        """Return the step to show. The steps of an ensemble are estimates, and its next estimate may be smaller."""
        if total:
            self.reached = max(self.reached, min(1.0, step / total))
            return max(step, round(self.reached * total))
        self.most = max(self.most, step)
        return self.most

    def _of(self, total: Optional[int]) -> None:
        """Set the total of the bar, which changes while a call runs. The bar of a notebook reads its total only once."""
        if total is None or total == self.bar.total:
            return
        self.bar.total = total
        if hasattr(self.bar, "container"):
            self.bar.container.children[1].max = total


def write(text: str) -> None:
    """Write a line to the standard error, if there is one."""
    if sys.stderr is not None:  # it is None in a program without a terminal, and print would then write to the standard output
        with contextlib.suppress(ValueError):  # it is closed
            print(text, file=sys.stderr, flush=True)


def _visible() -> bool:
    """Return True if a user sees what is written to the standard error."""
    if "ipykernel" in sys.modules:
        return True
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it is closed
        return False
