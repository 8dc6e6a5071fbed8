"""What the peers of LDLBoost share: the derivatives of label distributions, and the times of trees.

Neither library has soft labels for several classes, so users give it the derivatives of the K-L divergence of the
softmax: g = p - d and h = p(1 - p). Training begins at the mean label distribution.
"""

import time

import common

numpy = common.require(numpy="numpy")[0]


class Course:
    """The seconds of processor time and the losses of a training, tree by tree. Losses take no time."""

    def __init__(self, d):
        self.d = d
        self.first = numpy.log(numpy.maximum(d.mean(axis=0, dtype="float64"), 1e-12)).astype("float32")
        with numpy.errstate(divide="ignore", invalid="ignore"):
            self.entropy = float(numpy.where(d > 0, d * numpy.log(d), 0).sum(dtype="float64") / len(d))
        self.steps, self.prepared, self.paused = [], 0.0, 0.0
        self.losses = []
        self.began = time.process_time()

    def seconds(self):
        """Seconds since training began."""
        return time.process_time() - self.began - self.paused

    def derivatives(self, f):
        """g and h of F, samples by labels."""
        f = f - f.max(axis=1, keepdims=True)
        numpy.exp(f, out=f)
        f /= f.sum(axis=1, keepdims=True)
        return f - self.d, f * (1 - f)

    def loss(self, f):
        """Note the K-L divergence of F."""
        began = time.process_time()
        f = f.astype("float64")
        most = f.max(axis=1)
        log = most + numpy.log(numpy.exp(f - most[:, None]).sum(axis=1))
        cross = log.sum() - (self.d * f).sum()
        self.losses.append(self.entropy + float(cross) / len(f))
        self.paused += time.process_time() - began

    def answer(self):
        """Seconds of all trees, of the preparation and of a tree, the last loss, and the steps."""
        total = self.steps[-1]
        return {
            "seconds": [total, self.prepared, (total - self.prepared) / len(self.steps)],
            "loss": self.losses[-1],
            "start": self.losses[0],
            "steps": [{"seconds": s, "loss": l} for s, l in zip(self.steps, self.losses[1:])],
        }
