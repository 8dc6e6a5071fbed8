"""Names of parameters and options: which a call takes, and where the other flags of its command are in the library."""

from __future__ import annotations

import keyword

# Parameters of all estimators that say how features and labels are read.
READING = ("labels", "sigma", "range", "bounds", "missing", "normalize")
# Parameters of all estimators; they are no hyperparameters of an algorithm.
COMMON = ("random_state", *READING, "n_jobs", "verbose")

# Further options that say how a file or an array is read.
_FILES = (
    "categories",
    "columns",
    "data_format",
    "decimal",
    "delimiter",
    "drop",
    "encoding",
    "feature_columns",
    "features_variable",
    "groups",
    "header",
    "images",
    "intervals",
    "label_columns",
    "label_prefix",
    "labels_file",
    "labels_variable",
    "names",
    "row_names",
    "shape",
    "thousands",
    "tolerance",
    "values",
    "weights",
    "zero_based",
)

_ARRAYS = ("drop", "feature_columns", "names", "shape", "tolerance")  # which apply to arrays

# The options of the calls that run these commands: `Client.submit` runs job submit, `datasets.load` dataset convert.
OPTIONS = {
    "job list": ("after", "algorithm", "dataset", "limit", "mine", "name", "owner", "since", "sort", "state", "until"),
    "model list": ("after", "algorithm", "dataset", "limit", "name", "owner", "since", "sort", "until"),
    "dataset list": ("after", "limit", "name", "owner", "since", "sort", "until"),
    "experiment list": ("after", "limit", "name", "owner", "since", "sort", "state", "until"),
    "job submit": ("audit", "binarise", "clip", "enhance", "fold", "fold_seed", "folds", "mask", "measures", "normalise", "shared", "split", "test_fraction", "train_fraction", "wait", "weighted_measures", *_ARRAYS),
    "dataset import": ("shared", "validation", "wait", *READING, *_FILES),
    "dataset convert": (*READING, *_FILES),
    "dataset enhance": (),
    "dataset fetch": ("sha256", "to"),
    "dataset generate": ("density", "features", "grid", "labels"),
    "experiment run": ("data", "keep_models", "no_budget", "record", "record_again", "retry_failed", "shared", "wait"),
    "experiment report": ("against", "all_tests", "bare", "level", "no_times", "sample", "transpose"),
}

_CLUSTER = dict.fromkeys(("server", "context", "token_file", "ca_file", "tls_dir"), "the client has it; give it to Client")
# Options of the commands that are elsewhere in the library.
ELSEWHERE: dict[str, dict[str, str]] = {
    "job list": _CLUSTER,
    "model list": _CLUSTER,
    "dataset list": _CLUSTER,
    "experiment list": {**_CLUSTER, "shipped": "the command coppice experiment list --shipped lists the specs of the program"},
    "job submit": {
        **_CLUSTER,
        **dict.fromkeys((name for name in _FILES if name not in _ARRAYS), "it is for files; X is an array, or the name of a dataset"),
        "weights": "give sample_weight",
        "validation": "give the argument validation",
        **dict.fromkeys(READING, "give it to the estimator"),
        **dict.fromkeys(("set", "init_from", "members", "steps", "budget"), "give hyperparameters to the estimator"),
        "seed": "give random_state to the estimator",
        "algorithm": "the class of the estimator says it",
        "data": "give X",
        "dataset": "give the name as X",
        "spec": "the estimator has what it says",
    },
    "dataset import": {**_CLUSTER, "data": "give X"},
    "dataset convert": {"data": "give path", **dict.fromkeys(("out", "store"), "load writes no file")},
    "dataset enhance": {
        **{name: f"give {name}" for name in ("method", "normalise", "binarise")},
        **dict.fromkeys((*READING, *_FILES), "give arrays"),
        **dict.fromkeys(("format", "out"), "enhance returns an array"),
        "threads": "give n_jobs",
        "truth": "the functions of metrics compare distributions",
    },
    "dataset fetch": {"from": "give from_", "list": "the command coppice dataset fetch --list shows the names"},
    "dataset generate": {"kind": "give kind", "rows": "give rows", "seed": "give seed", **dict.fromkeys(("format", "out"), "generate writes no file")},
    "experiment run": {
        **dict.fromkeys(("level", "no_times", "sample", "all_tests"), "give it to a method of the report"),
        **dict.fromkeys(("format", "out"), "use the methods save and table of the report"),
        "figures": "use the method figures of the report",
        "dir": "give folder",
        "local": "leave out server",
        "threads": "give n_jobs",
        "yes": "give replace",
        "dry_run": "without replace=True, a changed spec is refused with the numbers of its runs",
    },
    "experiment report": {
        "format": "give kind",
        "out": "use save",
        "figures": "use the method figures",
        **dict.fromkeys(("local", "dir", "wait"), "a report has its folder or its cluster"),
    },
}

# Names in messages that are arguments of the library. Other flags belong to commands such as coppice coordinator.
ARGUMENTS = {
    *COMMON,
    *_CLUSTER,
    *(name for names in OPTIONS.values() for name in names),
    *("card", "dataset_name", "from", "only_data"),
    *("D_pred", "D_true", "folder", "budget", "init_from", "kind", "members", "name", "parameter", "replace", "rows", "sample_weight", "seed", "steps", "timeout"),
}


def argument_of(flag: str) -> str:
    """Return the parameter of a hyperparameter. The name of a keyword ends with an underscore: lambda is lambda_."""
    return flag + "_" if keyword.iskeyword(flag) else flag


def flag_of(argument: str) -> str:
    """Return the hyperparameter of a parameter: lambda_ is lambda."""
    return argument[:-1] if argument.endswith("_") and keyword.iskeyword(argument[:-1]) else argument
