"""Peer "tuned": the same forest, written for speed in Python.

What torch_plain.py does, with what an expert does about it: sparse rows stay sparse (SciPy), rows
that are equal within a window are counted once with a weight, the gradient is written out
(Eqs. 5 and 6, without autograd), all buffers are made once, and trees come first and rows
last, so that each level of all trees is two contiguous products. The children of the
nodes i of a level with n nodes are i and n + i: an order of leaves as good as any other,
since φ is drawn at random.
"""

import time

import common

numpy, scipy_sparse, torch = common.require(numpy="numpy", scipy="scipy.sparse", torch="torch")

FLOOR = 1e-20  # the least g
BLOCK = 512  # rows that are routed together in a leaf update
SPARSE = 0.5  # up to this share of non-zeros, rows are kept sparse


class Features:
    """The feature function f = xΘ + b, on dense or sparse rows."""

    def __init__(self, x, outputs, random):
        self.sparse = numpy.count_nonzero(x) <= SPARSE * x.size
        self.x = scipy_sparse.csr_matrix(x) if self.sparse else x
        bound = (3 / x.shape[1]) ** 0.5
        # Θ and b are one array, so that the optimiser has one update.
        self.all = random.uniform(-bound, bound, (x.shape[1] + 1, outputs)).astype("float32")
        self.all[-1] = 0
        self.theta, self.bias = self.all[:-1], self.all[-1]
        self.gradient, self.velocity = numpy.zeros_like(self.all), numpy.zeros_like(self.all)
        self.torch = [torch.from_numpy(a) for a in (self.all, self.gradient, self.velocity)]

    def rows(self, rows):
        return self.x[rows]

    def forward(self, x):
        """f of rows: outputs by rows."""
        f = x @ self.theta
        f += self.bias
        return torch.from_numpy(f).t().contiguous()

    def step(self, x, df, rate, momentum):
        """Stochastic gradient descent with momentum; df is outputs by rows."""
        df = df.numpy()
        if self.sparse:
            self.gradient[:-1] = x.T @ numpy.ascontiguousarray(df.T)
        else:
            numpy.dot(x.T, df.T, out=self.gradient[:-1])
        df.sum(axis=1, out=self.gradient[-1])
        every, gradient, velocity = self.torch
        velocity.mul_(momentum).add_(gradient)
        every.add_(velocity, alpha=-rate)


class Trees:
    """All trees on up to a number of rows, with the buffers that this needs."""

    def __init__(self, job, labels, rows, phi):
        self.levels, self.trees = job["depth"] - 1, job["trees"]
        self.phi = phi.reshape(-1)
        self.nodes = phi.shape[1]
        self.p = [torch.empty(self.trees, 2**level, rows) for level in range(self.levels + 1)]
        self.p[0].fill_(1)
        self.mass = [torch.empty_like(p) for p in self.p]
        self.df = torch.empty(self.trees, self.nodes, rows)
        self.g = torch.empty(self.trees, labels, rows)
        self.s = self.t = None

    def route(self, f):
        """Eq. 1: leaves' probabilities, trees by leaves by rows."""
        s = torch.sigmoid(f)
        self.s = s.index_select(0, self.phi).view(self.trees, self.nodes, -1)
        self.t = (1 - s).index_select(0, self.phi).view(self.trees, self.nodes, -1)
        for level in range(self.levels):
            n, p, below = 2**level, self.p[level], self.p[level + 1]
            torch.mul(p, self.s[:, n - 1 : 2 * n - 1], out=below[:, :n])
            torch.mul(p, self.t[:, n - 1 : 2 * n - 1], out=below[:, n:])
        return self.p[-1]

    def gradient(self, d, q, outputs):
        """Eqs. 5 and 6 of the rows that were routed: ∂R/∂f, outputs by rows; d is labels by rows."""
        torch.bmm(q.transpose(1, 2), self.p[-1], out=self.g)
        r = d / self.g.clamp_min_(FLOOR)
        torch.bmm(q, r, out=self.mass[-1])
        self.mass[-1].mul_(self.p[-1])
        for level in reversed(range(self.levels)):
            n, below = 2**level, self.mass[level + 1]
            left, right, span = below[:, :n], below[:, n:], slice(n - 1, 2 * n - 1)
            torch.add(left, right, out=self.mass[level])
            df = torch.mul(self.s[:, span], right, out=self.df[:, span])
            df.addcmul_(self.t[:, span], left, value=-1)
        sums = torch.zeros(outputs, d.shape[1])
        sums.index_add_(0, self.phi, self.df.view(-1, d.shape[1]))
        return sums.div_(d.shape[1] * self.trees)


class Forest:
    """The forest and its training."""

    def __init__(self, x, d, job, random):
        self.job, self.d = job, torch.from_numpy(d)
        leaves, self.outputs = 2 ** (job["depth"] - 1), job["outputs"]
        self.features = Features(x, self.outputs, random)
        phi = numpy.stack([random.permutation(self.outputs)[: leaves - 1] for _ in range(job["trees"])])
        self.phi = torch.from_numpy(phi)
        self.q = torch.full((job["trees"], leaves, d.shape[1]), 1 / d.shape[1])
        self.batch = Trees(job, d.shape[1], job["batch"], self.phi)
        self.block = Trees(job, d.shape[1], BLOCK, self.phi)
        self.entropy = torch.xlogy(self.d, self.d).sum(dim=1)

    def step(self, rows):
        x, numbers = self.features.rows(rows), torch.from_numpy(rows)
        self.batch.route(self.features.forward(x))
        d = self.d[numbers].t().contiguous()
        df = self.batch.gradient(d, self.q, self.outputs)
        self.features.step(x, df, self.job["rate"], self.job["momentum"])

    def window(self, drawn):
        """The different rows of mini-batches, how often each was drawn, and their routing."""
        counts = numpy.bincount(numpy.concatenate(drawn), minlength=len(self.d))
        rows = numpy.flatnonzero(counts)
        p = torch.empty(self.job["trees"], len(rows), self.q.shape[1])
        for at in range(0, len(rows), BLOCK):
            part = rows[at : at + BLOCK]
            block = self.block
            if len(part) < BLOCK:
                block = Trees(self.job, self.d.shape[1], len(part), self.phi)
            leaves = block.route(self.features.forward(self.features.rows(part)))
            p[:, at : at + len(part)].copy_(leaves.transpose(1, 2))
        return rows, counts[rows].astype("float32"), p.numpy()

    def update_leaves(self, drawn):
        """Eq. 12 on the mini-batches drawn; the loss is that before the last iteration."""
        rows, weight, p = self.window(drawn)
        weighted = self.d.numpy()[rows] * weight[:, None]
        q = self.q.numpy()
        loss = float((self.entropy.numpy()[rows] * weight).sum())
        for iteration in range(self.job["iterations"]):
            last = iteration == self.job["iterations"] - 1
            for tree in range(len(p)):
                loss -= self.iterate(p[tree], q[tree], weighted, last) / len(p)
        return loss / float(weight.sum())

    def iterate(self, p, q, weighted, last):
        """One iteration for one tree, block after block while a block's p is in the cache.

        In the last iteration it returns the sum of weighted · ln g."""
        cross, sums, part = 0.0, numpy.zeros_like(q), numpy.empty_like(q)
        space = numpy.empty((BLOCK, q.shape[1]), "float32")
        for at in range(0, len(p), BLOCK):
            block, d = p[at : at + BLOCK], weighted[at : at + BLOCK]
            g = space[: len(block)]
            numpy.matmul(block, q, out=g)
            numpy.maximum(g, FLOOR, out=g)
            if last:
                cross += float((d * numpy.log(g)).sum())
            numpy.divide(d, g, out=g)
            numpy.matmul(block.T, g, out=part)
            sums += part
        q *= sums
        q /= q.sum(axis=1, keepdims=True)
        return cross


def train(job, data):
    """One run: seconds a step with leaf updates, of a leaf update and of a step, and the loss."""
    x = data.standardised() if job["standardise"] else data.x
    random = numpy.random.RandomState(job["seed"])
    forest = Forest(x, data.d, job, random)
    batches = common.Batches(len(x), job["batch"], random)
    loss = forest.update_leaves([batches.next() for _ in range(job["set"])])
    steps = leaves = 0.0
    for _ in range(job["sets"]):
        drawn, began = [], time.perf_counter()
        for _ in range(job["set"]):
            drawn.append(batches.next())
            forest.step(drawn[-1])
        between = time.perf_counter()
        loss = forest.update_leaves(drawn)
        steps += between - began
        leaves += time.perf_counter() - between
    count = job["sets"] * job["set"]
    return [(steps + leaves) / count, leaves / job["sets"], steps / count], loss


if __name__ == "__main__":
    import scipy

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    common.serve("tuned", {"PyTorch": torch.__version__, "SciPy": scipy.__version__, "NumPy": numpy.__version__}, train)
