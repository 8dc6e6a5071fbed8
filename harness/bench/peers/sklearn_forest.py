"""Peer "sklearn": scikit-learn's random forest on label distributions.

Its trees minimise the squared error of all labels together; leaves hold mean
distributions, as StructRF's do.
"""

import time

import common

numpy, sklearn, ensemble = common.require(numpy="numpy", sklearn="sklearn", ensemble="sklearn.ensemble")


def grow(job, data):
    """One run of "forest": the seconds to grow a forest, and the loss on all rows."""
    model = forest(job)
    began = time.perf_counter()
    model.fit(data.x, data.d)
    seconds = time.perf_counter() - began
    return [seconds], divergence(data.d, model.predict(data.x))


def predict(job, data):
    """One run of "predict": the seconds to predict all rows, and one row at a time the mean over some."""
    key = (job["samples"], job["depth"])
    if key not in data.cache:
        data.cache[key] = forest(job).fit(data.x, data.d)
    model, rows = data.cache[key], data.x[: job["rows"]]
    began = time.perf_counter()
    predicted = model.predict(data.x)
    between = time.perf_counter()
    for i in range(len(rows)):
        model.predict(rows[i : i + 1])
    end = time.perf_counter()
    return [between - began, (end - between) / len(rows)], divergence(data.d, predicted)


def forest(job):
    """A forest of the settings of StructRF: nodes of fewer samples are not split."""
    return ensemble.RandomForestRegressor(
        job["trees"], max_depth=job["depth"], min_samples_split=job["samples"],
        max_samples=0.8, max_features=1.0, n_jobs=1, random_state=job["seed"],
    )


def divergence(d, g):
    """The mean K-L divergence of g from d; labels of degree 0 count nothing."""
    d, g = d.astype("float64"), numpy.maximum(g, 1e-12)
    return float(numpy.where(d > 0, d * numpy.log(numpy.maximum(d, 1e-300) / g), 0).sum() / len(d))


def run(job, data):
    """Answer a job by its kind."""
    return {"forest": grow, "predict": predict}[job["kind"]](job, data)


if __name__ == "__main__":
    common.serve("sklearn", {"scikit-learn": sklearn.__version__, "NumPy": numpy.__version__}, run)
