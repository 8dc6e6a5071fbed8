"""Peer "torch": the label distribution learning forest as a user of PyTorch writes it.

The forest of Shen et al. 2017 with a linear feature function, or with a network of one hidden
layer: all trees and all rows of a mini-batch at once, the gradient of Eqs. 5, 6 and 13 by autograd, torch.optim.SGD with
momentum, and every 100 steps a leaf update of Eq. 12 over the last 100 mini-batches.
"""

import time

import common

numpy, torch = common.require(numpy="numpy", torch="torch")

FLOOR = 1e-20  # the least g


def linear(features, outputs):
    """A linear feature function that begins as `init: xavier` does."""
    layer = torch.nn.Linear(features, outputs)
    bound = (3 / features) ** 0.5
    torch.nn.init.uniform_(layer.weight, -bound, bound)
    torch.nn.init.zeros_(layer.bias)
    return layer


def network(features, hidden, outputs):
    """A network of one hidden layer that begins as `init: he` does."""
    layers = torch.nn.Linear(features, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, outputs)
    for layer in layers[::2]:
        torch.nn.init.kaiming_normal_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    return torch.nn.Sequential(*layers)


class Forest(torch.nn.Module):
    """Trees of one depth that share the output units of one linear layer, or of a network."""

    def __init__(self, features, labels, job, random):
        super().__init__()
        self.depth, trees = job["depth"], job["trees"]
        leaves = 2 ** (self.depth - 1)
        self.f = network(features, job["hidden"], job["outputs"]) if job.get("hidden") else linear(features, job["outputs"])
        # φ: each tree's split nodes, in heap order, have output units of their own.
        phi = numpy.stack([random.permutation(job["outputs"])[: leaves - 1] for _ in range(trees)])
        self.register_buffer("phi", torch.from_numpy(phi))
        self.register_buffer("q", torch.full((trees, leaves, labels), 1 / labels))

    def route(self, x):
        """Eq. 1: the probability of each leaf, rows by trees by leaves."""
        s = torch.sigmoid(self.f(x))[:, self.phi]
        p = torch.ones(len(x), len(self.phi), 1)
        for level in range(self.depth - 1):
            left = s[:, :, 2**level - 1 : 2 ** (level + 1) - 1]
            p = torch.stack((p * left, p * (1 - left)), dim=-1).flatten(2)
        return p

    def loss(self, x, d):
        """Eq. 3 less the labels' entropy: K-L, the mean over rows and trees."""
        g = torch.einsum("rtl,tlc->rtc", self.route(x), self.q).clamp_min(FLOOR)
        return divergence(d[:, None, :], g) / (len(x) * len(self.phi))

    @torch.no_grad()
    def update_leaves(self, window, iterations):
        """Eq. 12 on the mini-batches of window; the loss is that before the last iteration."""
        p = torch.cat([self.route(x) for x, _ in window]).transpose(0, 1).contiguous()
        d = torch.cat([d for _, d in window])
        for _ in range(iterations):
            g = torch.bmm(p, self.q).clamp_min_(FLOOR)
            q = self.q * torch.bmm(p.transpose(1, 2), d / g)
            self.q = q / q.sum(dim=-1, keepdim=True)
        return float(divergence(d, g)) / (len(d) * len(self.phi))


def divergence(d, g):
    """The K-L divergence of g from d, summed; labels of degree 0 count nothing."""
    return (torch.xlogy(d, d) - d * g.log()).sum()


def train(job, data):
    """One run: seconds a step with leaf updates, of a leaf update and of a step, and the loss."""
    x = data.standardised() if job["standardise"] else data.x
    x, d = torch.from_numpy(x), torch.from_numpy(data.d)
    random = numpy.random.RandomState(job["seed"])
    torch.manual_seed(job["seed"])
    forest = Forest(x.shape[1], d.shape[1], job, random)
    optimizer = torch.optim.SGD(forest.parameters(), lr=job["rate"], momentum=job["momentum"])
    batches = common.Batches(len(x), job["batch"], random)

    def draw():
        rows = torch.from_numpy(batches.next())
        return x[rows], d[rows]

    # While q is uniform the gradient is zero: the first set only fills the window.
    window = [draw() for _ in range(job["set"])]
    loss = forest.update_leaves(window, job["iterations"])
    steps = leaves = 0.0
    for _ in range(job["sets"]):
        window, began = [], time.perf_counter()
        for _ in range(job["set"]):
            batch = draw()
            window.append(batch)
            optimizer.zero_grad()
            forest.loss(*batch).backward()
            optimizer.step()
        between = time.perf_counter()
        loss = forest.update_leaves(window, job["iterations"])
        steps += between - began
        leaves += time.perf_counter() - between
    count = job["sets"] * job["set"]
    return [(steps + leaves) / count, leaves / job["sets"], steps / count], loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    common.serve("torch", {"PyTorch": torch.__version__, "NumPy": numpy.__version__}, train)
