"""A suite, row by row, into a folder of results; rows that are there already are not run again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pocketgrad.base.errors import DataError
from pocketgrad.bench.result import FORMAT
from pocketgrad.bench.stats import geometric_mean
from pocketgrad.bench.suites import CONVOLUTIONAL, Row

Measure = Callable[[Row], dict[str, Any]]


def sweep(
    rows: Sequence[Row], folder: Path, measure: Measure, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Measure what is missing; the summary. An interrupted row is measured again next time."""
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[Row, dict[str, Any]] = {}
    interrupted = False
    for i, row in enumerate(rows):
        path = folder / f"{row.workload.slug}.json"
        if path.is_file():
            results[row] = stored(path)
            progress(f"{row.workload.title}: taken from {path}")
            continue
        progress(f"row {i + 1} of {len(rows)}: {row.workload.title}")
        found = measure(row)
        if found["interrupted"]:
            interrupted = True
            break
        temporary = path.with_suffix(".part")
        temporary.write_text(json.dumps(found, indent=1) + "\n")
        temporary.replace(path)  # whole or not at all
        results[row] = found
    return {**summary(results), "interrupted": interrupted, "missing": len(rows) - len(results)}


def stored(path: Path) -> dict[str, Any]:
    """A result of an earlier run."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except ValueError:
        found = {}
    if found.get("format") != FORMAT:
        raise DataError(f"'{path}' is no result of this benchmark; remove it to measure again")
    return found


def summary(results: dict[Row, dict[str, Any]]) -> dict[str, Any]:
    """One line per row, and the geometric mean over the convolutional models."""
    lines = [
        {
            "model": row.model,
            "batch": row.batch,
            "image": row.image,
            "at_least": row.at_least,
            "speedup_best_torch_fp32": found["speedup_best_torch_fp32"],
            "best": found["best_torch_fp32"],
            "speedup": found["speedup"],
            "disturbed": any(p.get("disturbances") for p in found["participants"]),
            "outcomes": {p["name"]: p["outcome"] for p in found["participants"]},
        }
        for row, found in results.items()
    ]
    known = [
        x["speedup_best_torch_fp32"]
        for x in lines
        if x["model"] in CONVOLUTIONAL and x["speedup_best_torch_fp32"]
    ]
    return {
        "format": f"{FORMAT}-sweep",
        "rows": lines,
        "geometric_mean_convolutional": geometric_mean(known) if known else None,
    }
