"""How objects show themselves in a notebook."""

from __future__ import annotations

import html
from typing import Any, Iterable, Sequence


def table(rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table."""
    parts = ["<table><tbody>"]
    for row in rows:
        parts.append("<tr>" + "".join(f"<td>{html.escape(text(value))}</td>" for value in row) + "</tr>")
    return "".join([*parts, "</tbody></table>"])


def text(value: Any) -> str:
    """Return a value of a table as a text."""
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def estimator_html(estimator: Any) -> str:
    """Return an estimator as HTML: its parameters and, if it is fitted, the measures on its samples."""
    parts = [f"<code>{html.escape(repr(estimator))}</code>"]
    if hasattr(estimator, "model_"):
        result = getattr(estimator, "result_", {})
        used = result.get("samples", {})
        rows: list[Sequence[Any]] = [
            *((f"{part} samples", n) for part, n in (("training", used.get("train")), ("validation", used.get("validation"))) if n),
            ("features", estimator.n_features_in_),
            ("labels", ", ".join(str(n) for n in estimator.label_names_[:20])),
            ("digest", estimator.model_digest_[:12]),
        ]
        for name, value in result.get("measures", {}).items():
            rows.append((f"{name} on {result.get('evaluated_on', '')}", value.get("mean")))
        parts.append(table(rows))
    return "".join(parts)
