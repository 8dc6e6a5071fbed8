"""Tables of what a cluster has."""

from __future__ import annotations

import datetime
from typing import Any, Mapping, Optional, Sequence

_MEASURES = ("canberra", "chebyshev", "chi2", "clark", "cosine", "euclidean", "fidelity", "intersection", "kl", "sorensen")
# Columns that each table has, also if it is empty. A table may have more. They are keys of docs/reference/json.md.
COLUMNS: dict[str, tuple[str, ...]] = {
    "jobs": (
        *("id", "index", "name", "state", "dataset", "rounds", "submitted", "started", "running_since", "ran_seconds", "ended", "seconds"),
        *("evaluated_on", "job.algorithm", "job.seed", "job.dataset", "progress.step", "progress.steps", "progress.loss", "progress.phase"),
        *(f"measures.{name}" for name in _MEASURES),
    ),
    "models": ("name", "job", "algorithm", "dataset", "digest", "blob", "bytes", "time"),
    "datasets": ("name", "digest", "samples", "features", "labels", "sparse", "non_zeros", "shards", "bytes", "mean_label", "missing", "imported"),
    "experiments": ("name", "state", "jobs", "runs", "runs_done", "submitted", "outline", "newest_job", "index"),
}
_TIMES = ("submitted", "started", "running_since", "ended", "time", "imported", "model_deleted")


def frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a DataFrame, or as a list of dicts without pandas. Nested keys are joined by points."""
    try:
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return [dict(row) for row in rows]
    return pandas.json_normalize([dict(row) for row in rows])


def table(kind: str, rows: Optional[Sequence[Mapping[str, Any]]]) -> Any:
    """Return rows as a DataFrame with the columns of its kind, or as a list of dicts without pandas. Times are datetimes in UTC."""
    try:
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return [{key: time_of(value) if key in _TIMES else value for key, value in row.items()} for row in rows or ()]
    found = frame(rows or ())
    missing = [name for name in COLUMNS[kind] if name not in found.columns]
    found = found.reindex(columns=[*found.columns, *missing])
    if not rows:
        found = found.astype(object)
    for name in _TIMES:
        if name in found.columns:
            found[name] = pandas.to_datetime(pandas.to_numeric(found[name]).replace(0, float("nan")), unit="s", utc=True).dt.round("ms").astype("datetime64[ns, UTC]")
    return found


def time_of(seconds: Optional[float]) -> Optional[datetime.datetime]:
    """Return a Unix time as a datetime in UTC. Zero stands for no time."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc) if seconds else None
