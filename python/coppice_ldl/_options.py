"""Names of parameters and options, and the flags of commands that they stand for."""

from __future__ import annotations

# Parameters of all estimators that say how features and labels are read.
READING = ("labels", "sigma", "range", "missing", "normalize")
# Parameters of all estimators; they are no hyperparameters of an algorithm.
COMMON = ("random_state", *READING, "n_jobs", "verbose")

# Further options that say how a file or an array is read.
_FILES = (
    "categories",
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
    "zero_based",
)

# The options of the calls that run these commands.
OPTIONS = {
    "job list": ("limit", "mine", "owner", "sort", "state"),
    "model list": ("limit",),
    "job submit": ("audit", "clip", "fold", "fold_seed", "folds", "measures", "split", "test_fraction", "wait", *_FILES),
    "dataset import": ("wait", *READING, *_FILES),
    "dataset convert": (*READING, *_FILES),
    "dataset generate": ("density", "features", "grid", "labels"),
    "experiment run": ("data", "keep_models", "no_budget", "record", "record_again", "retry_failed", "wait"),
    "experiment report": ("all_tests", "level", "no_times", "sample"),
}

_CLUSTER = dict.fromkeys(("server", "context", "token_file", "ca_file", "tls_dir"), "the client has it; give it to Client")
_PARAMETER = "give it to the estimator"
# Options of the commands that are elsewhere in the library.
ELSEWHERE: dict[str, dict[str, str]] = {
    "job list": _CLUSTER,
    "model list": _CLUSTER,
    "job submit": {
        **_CLUSTER,
        **dict.fromkeys((*READING, "set", "algorithm", "init_from", "members", "steps"), _PARAMETER),
        "seed": "give random_state to the estimator",
        "data": "give X",
        "dataset": "give the name as X",
        "spec": "the estimator has what it says",
        "settings": "submit does not print settings",
    },
    "dataset import": {**_CLUSTER, "data": "give X"},
    "dataset convert": {"data": "give path", **dict.fromkeys(("out", "store"), "load writes no file")},
    "dataset generate": {"kind": "give kind", "rows": "give rows", "seed": "give seed", **dict.fromkeys(("format", "out"), "generate writes no file")},
    "experiment run": {
        **dict.fromkeys(("format", "out", "level", "no_times", "sample", "all_tests"), "give it to a method of the report"),
        "figures": "use the method figures of the report",
        "dir": "give folder",
        "local": "leave out server",
        "threads": "give n_jobs",
        "yes": "give replace",
        "dry_run": "without replace=True, a changed spec is refused with the numbers of its runs",
    },
    "experiment report": {"format": "give kind", "out": "use save", "figures": "use the method figures", "local": "leave it out", "dir": "leave it out", "wait": "leave it out"},
}

# Names in messages that are arguments of the library. Other flags in messages belong to commands such as coppice coordinator.
ARGUMENTS = {
    *COMMON,
    *_CLUSTER,
    *(name for names in OPTIONS.values() for name in names),
    *(name for names in ELSEWHERE.values() for name in names),
}
