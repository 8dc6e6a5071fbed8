"""Peer "torch" of `coppice bench network`: layers alone, and the forest on a network.

The layers are PyTorch's own, with weights, rows and derivatives of the outputs that Coppice's
have too, so that the gradients agree. The forest is that of torch_plain.py.
"""

import time

import common

numpy, torch = common.require(numpy="numpy", torch="torch")

import torch_plain


def numbers(seed, *shape):
    """Values from -1 to 1 that only their place and the seed decide: Coppice has the same."""
    n = int(numpy.prod(shape))
    h = (numpy.arange(n, dtype="uint32") + numpy.uint32(seed << 24)) * numpy.uint32(2654435761)
    h = (h ^ (h >> 15)) * numpy.uint32(2246822519)
    h = (h ^ (h >> 13)) * numpy.uint32(3266489917)
    h ^= h >> 16
    return torch.from_numpy((h.astype("float64") / 2**31 - 1).astype("float32").reshape(shape))


def dense(job):
    """A network of dense layers with rectifiers between them, and its rows."""
    sides, layers = job["sides"], []
    for i, (inputs, outputs) in enumerate(zip(sides, sides[1:])):
        layer = torch.nn.Linear(inputs, outputs)
        weights = numbers(i, inputs, outputs) * numpy.float32((6 / inputs) ** 0.5)
        layers += [filled(layer, weights.t()), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]), numbers(10, job["batch"], sides[0])


def convolution(job):
    """A convolution that keeps the size of its images, and images."""
    channels, side, outputs, kernel = job["channels"], job["side"], job["outputs"], job["kernel"]
    layer = torch.nn.Conv2d(channels, outputs, kernel, padding=(kernel - 1) // 2)
    reads = channels * kernel * kernel
    weights = numbers(0, channels, kernel, kernel, outputs) * numpy.float32((6 / reads) ** 0.5)
    return filled(layer, weights.permute(3, 0, 1, 2)), numbers(10, job["batch"], channels, side, side)


def filled(layer, weights):
    """A layer with these weights and biases of 0."""
    with torch.no_grad():
        layer.weight.copy_(weights)
        layer.bias.zero_()
    return layer


def layers(job, make):
    """One run: the seconds of forward and backward, and the mean size of the gradient's values."""
    net, x = make(job)
    x.requires_grad_(job["inputs"])  # where layers would stand before it
    dy = numbers(20, *net(x).shape)
    began = time.perf_counter()
    for _ in range(job["repeats"]):
        net.zero_grad()
        x.grad = None
        net(x).backward(dy)
    seconds = (time.perf_counter() - began) / job["repeats"]
    gradient = torch.cat([p.grad.flatten() for p in net.parameters()])
    return [seconds], float(gradient.double().abs().mean())


def run(job, data):
    """Answer a job by its kind."""
    if job["kind"] == "ldlf":
        return torch_plain.train(job, data)
    return layers(job, {"dense": dense, "convolution": convolution}[job["kind"]])


if __name__ == "__main__":
    torch.set_num_threads(1)
    common.serve("torch", {"PyTorch": torch.__version__, "NumPy": numpy.__version__}, run)
