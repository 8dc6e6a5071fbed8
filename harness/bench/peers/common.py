"""What the peers of `coppice bench` share.

A peer is a process. Its first line on stdout says who it is:

    {"peer": "torch", "versions": {"Python": "3.11.2", "PyTorch": "1.13.1"}}

or what it misses, and it ends:

    {"missing": "No module named 'torch'"}

After that each line on stdin is a job, and each line on stdout its answer:

    {"kind": "ldlf", "data": "/tmp/x/Movie.npz", "batch": 64, ...}
    {"seconds": [0.0021, 0.081], "loss": 0.1037}

The seconds are those of what is measured, in the order that the job's kind has in
harness/speed; the loss is the K-L divergence of the model on its training rows, or another
number from which it is seen that the peer does the same work. A job without data needs none. What goes wrong ends the process, with
its reason on stderr.
"""

import importlib
import json
import os
import sys

# One thread, whatever a library would take. These must be set before NumPy is loaded.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
    os.environ[variable] = "1"


def require(**modules):
    """Import modules by name and return them, or say what is missing and end."""
    found = []
    for module in modules.values():
        try:
            found.append(importlib.import_module(module))
        except ImportError as problem:
            say({"missing": str(problem)})
            sys.exit(0)
    return found


def say(value):
    """Write one line of JSON to the program that asks."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def serve(peer, versions, run):
    """Answer jobs until stdin ends. run takes a job and its data and returns seconds and loss, or an answer."""
    say({"peer": peer, "versions": {"Python": sys.version.split()[0], **versions}})
    loaded = {}
    for line in sys.stdin:
        job = json.loads(line)
        path = job.get("data")
        if path and path not in loaded:
            loaded[path] = load(path)
        answer = run(job, loaded.get(path))
        if not isinstance(answer, dict):
            answer = dict(zip(("seconds", "loss"), answer))
        say(answer)


class Data:
    """A dataset: x and d are float32, rows by features and rows by labels."""

    def __init__(self, x, d):
        self.x, self.d = x, d
        self.cache = {}  # what a peer derives once, outside of what is measured

    def standardised(self):
        """Features of mean 0 and deviation 1, as `scaling: standard` has them."""
        if "standardised" not in self.cache:
            x = self.x.astype("float64")
            deviation = x.std(axis=0)
            deviation[deviation == 0] = 1
            self.cache["standardised"] = ((x - x.mean(axis=0)) / deviation).astype("float32")
        return self.cache["standardised"]


def load(path):
    """Read the file that `coppice bench` wrote for its peers."""
    import numpy

    with numpy.load(path, allow_pickle=False) as arrays:
        return Data(arrays["features"], arrays["labels"])


class Batches:
    """Mini-batches as Coppice has them: permutation after permutation of all rows."""

    def __init__(self, rows, batch, random):
        self.rows, self.batch, self.random = rows, batch, random
        self.order, self.at = random.permutation(rows), 0

    def next(self):
        """The row numbers of the next mini-batch."""
        import numpy

        parts, wanted = [], self.batch
        while wanted > 0:
            if self.at == self.rows:
                self.order, self.at = self.random.permutation(self.rows), 0
            part = self.order[self.at : self.at + wanted]
            parts.append(part)
            self.at += len(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)
