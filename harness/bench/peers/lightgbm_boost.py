"""Peer "lightgbm": LightGBM with a tree for each label on label distributions.

The derivatives of soft labels are given, which is faster than a copy of each sample for each label.
"""

import common

numpy, lightgbm = common.require(numpy="numpy", lightgbm="lightgbm")
import boosting


def run(job, data):
    """Train once."""
    course = boosting.Course(data.d)
    labels = data.d.shape[1]
    parameters = {
        "objective": "custom", "num_class": labels, "max_depth": job["depth"], "num_leaves": 2 ** job["depth"],
        "max_bin": job["bins"], "learning_rate": job["rate"], "lambda_l2": job["l2"], "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0, "num_threads": 1, "verbosity": -1, "metric": "none",
    }
    init = numpy.repeat(course.first, len(data.d))  # class after class
    matrix = lightgbm.Dataset(
        data.x, label=numpy.zeros(len(data.d)), init_score=init, params=parameters, free_raw_data=False
    ).construct()
    course.prepared = course.seconds()

    def objective(f, _):
        f = f.reshape(len(data.d), labels, order="F") if f.ndim == 1 else f
        course.loss(f)
        return course.derivatives(f)

    booster = lightgbm.Booster(parameters, matrix)
    for _ in range(job["trees"]):
        booster.update(fobj=objective)
        course.steps.append(course.seconds())
    course.loss(booster.predict(data.x, raw_score=True) + course.first)
    return course.answer()


if __name__ == "__main__":
    common.serve("lightgbm", {"LightGBM": lightgbm.__version__, "NumPy": numpy.__version__}, run)
