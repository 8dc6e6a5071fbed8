"""Peer "xgboost": XGBoost with a tree for all labels (multi_output_tree) on label distributions."""

import common

numpy, xgboost = common.require(numpy="numpy", xgboost="xgboost")
import boosting


def run(job, data):
    """Train once."""
    course = boosting.Course(data.d)
    matrix = xgboost.QuantileDMatrix(
        data.x, label=data.d, base_margin=numpy.tile(course.first, (len(data.d), 1)), max_bin=job["bins"], nthread=1
    )
    course.prepared = course.seconds()
    booster = xgboost.Booster(
        {
            "multi_strategy": "multi_output_tree", "tree_method": "hist", "max_depth": job["depth"],
            "max_bin": job["bins"], "eta": job["rate"], "lambda": job["l2"], "min_child_weight": 0, "nthread": 1,
            "num_target": data.d.shape[1], "base_score": 0, "disable_default_eval_metric": 1,
        },
        [matrix],
    )
    for tree in range(job["trees"]):
        f = booster.predict(matrix, output_margin=True, training=True)
        course.loss(f)
        g, h = course.derivatives(f)
        booster.boost(matrix, iteration=tree, grad=g, hess=h)
        course.steps.append(course.seconds())
    course.loss(booster.predict(matrix, output_margin=True))
    return course.answer()


if __name__ == "__main__":
    common.serve("xgboost", {"XGBoost": xgboost.__version__, "NumPy": numpy.__version__}, run)
