"""Prints the results of all commands: tables and lines for people, or one JSON object."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_COLUMNS = 200  # rows of a table that nobody looks at stay on one line


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of text; ``align`` has a letter per column, 'l' or 'r'."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str = ""


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option every command has."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def emit(as_json: bool, payload: Mapping[str, object], parts: Iterable[Table | str]) -> None:
    """Print ``payload`` as JSON, or else ``parts`` as text."""
    if as_json:
        print(json.dumps(payload, indent=2))
        return
    show(*parts)


def show(*parts: Table | str) -> None:
    """Print tables and paragraphs; text is shown as it is, never read as markup."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    for part in parts:
        if isinstance(part, Table):
            _show_table(console, part)
        else:
            console.print(Text(part), soft_wrap=not console.is_terminal)


def _show_table(console: Console, table: Table) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=Text(table.title, style="bold") if table.title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for index, name in enumerate(table.columns):
        right = table.align[index : index + 1] == "r"
        drawn.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    console.print(drawn)
