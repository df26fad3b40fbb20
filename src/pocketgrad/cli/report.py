"""`pocketgrad report`: what saved profiles say; so far, what changed from one to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pocketgrad.base.errors import SettingError
from pocketgrad.cli.output import Table, add_json, emit

if TYPE_CHECKING:
    from pocketgrad.profile.compare import Change

NAME = "report"
HELP = "compare two saved profiles: what got slower, by operation, and whether it is noise"
EXAMPLE = "pocketgrad report diff before after --top 20"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("what", choices=("diff",), help="diff: what changed from BEFORE to AFTER")
    parser.add_argument("before", metavar="BEFORE", type=Path, help="folder of a profile")
    parser.add_argument("after", metavar="AFTER", type=Path, help="folder of another one")
    parser.add_argument("--top", type=int, default=20, metavar="N", help="operations to show")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the comparison; a difference is an answer, not a failure."""
    from pocketgrad.profile.compare import ALPHA, compare
    from pocketgrad.profile.folder import load

    if args.top < 1:
        raise SettingError(f"--top {args.top}: choose 1 or more")
    found = compare(load(args.before), load(args.after))
    shown = [found.step, *found.ops[: args.top]]
    payload = {
        "step": _payload(found.step),
        "ops": [_payload(change) for change in found.ops],
        "alpha": ALPHA,
        "warnings": list(found.warnings),
    }
    columns = ("operation", "layer", "phase", "before", "after", "change", "p")
    parts: list[Table | str] = [
        Table(f"{args.before} → {args.after}", columns, [change.cells() for change in shown],
              "lllrrrr"),
        f"* more than noise: ranks of the times per step, corrected for {len(found.ops) + 1} tests "
        f"at {100 * ALPHA:g} %",
        *(f"note: {warning}" for warning in found.warnings),
    ]  # fmt: skip
    emit(args.json, payload, parts)
    return 0


def _payload(change: Change) -> dict[str, Any]:
    return {
        "op": change.op,
        "scope": change.scope,
        "phase": change.phase,
        "before_ns": change.before_ns,
        "after_ns": change.after_ns,
        "ratio": change.ratio,
        "p": change.p,
        "significant": change.significant,
    }
