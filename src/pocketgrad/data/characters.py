"""Character text: two books that ship with the package, any text file, texts with a class.

A sample of text is ``steps`` characters as positions in the alphabet (``classes``), its target the
same ones moved by one. The last tenth of a text is kept for testing.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.api import Dataset
from pocketgrad.data.files import read_text

STEPS = 64
HELD_OUT = 10  # one in so many samples
_SHIPPED = Path(__file__).parent / "embedded"
_SONNETS, _MOBY_DICK = _SHIPPED / "sonnets.txt.gz", _SHIPPED / "moby-dick.txt.gz"

# Of Zhang et al. 2015; every other character is read as none of them.
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+-=<>()[]{}\n"
NONE = 70
LENGTH = 1014


def shakespeare(steps: int | None = None) -> Dataset:
    """Shakespeare's 154 sonnets, 95 kB."""
    return text(_SONNETS, steps, "shakespeare")


def moby_dick(steps: int | None = None) -> Dataset:
    """The first 400 kB of Moby Dick."""
    return text(_MOBY_DICK, steps, "moby_dick")


def text(path: str | Path, steps: int | None = None, name: str | None = None) -> Dataset:
    """Any UTF-8 text file, plain or gzip."""
    path, steps = Path(path), steps or STEPS
    codes, alphabet = encoded(read_text(path))
    whole = (len(codes) - 1) // steps
    test = max(1, whole // HELD_OUT)
    if whole < 2:
        raise DataError(
            f"'{path}' has {len(codes)} characters, too few for two samples of {steps} and the "
            "character after each; give a longer text"
        )
    x = codes[: whole * steps].reshape(whole, steps)
    y = codes[1 : whole * steps + 1].reshape(whole, steps)
    name = name or path.stem
    held_out = Dataset(f"{name}/test", x[-test:], y[-test:], alphabet)
    return Dataset(name, x[:-test], y[:-test], alphabet, held_out=held_out)


def encoded(
    characters: str, alphabet: Sequence[str] | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Characters as positions in an alphabet: their own, or one that is given."""
    points = np.frombuffer(characters.encode("utf-32-le"), "<u4")
    if alphabet is None:
        found, codes = np.unique(points, return_inverse=True)
        return codes.astype(np.int32).reshape(-1), tuple(chr(int(p)) for p in found)
    place = {c: i for i, c in enumerate(alphabet)}
    unknown = next((c for c in characters if c not in place), None)
    if unknown is not None:
        raise DataError(
            f"the character {unknown!r} is not among the {len(place)} of the text trained on; "
            "leave it out"
        )
    return np.array([place[c] for c in characters], np.int32), tuple(alphabet)


def authors(length: int = LENGTH) -> Dataset:
    """Passages of two books, to be told apart: Shakespeare's sonnets and Moby Dick.

    Passages overlap; those for testing are of the last tenth of each book and overlap no others.
    """
    names = ("Shakespeare", "Melville")
    bodies = [read_text(path) for path in (_SONNETS, _MOBY_DICK)]
    cuts = [len(body) - len(body) // HELD_OUT for body in bodies]
    train, test = (
        _told_apart([_passages(body, length) for body in parts])
        for parts in (
            [body[:cut] for body, cut in zip(bodies, cuts, strict=True)],
            [body[cut:] for body, cut in zip(bodies, cuts, strict=True)],
        )
    )
    return Dataset("authors", *train, names, held_out=Dataset("authors/test", *test, names))


def labelled_texts(path: str | Path, length: int = LENGTH) -> Dataset:
    """A CSV file with a class in the first column and text in the others, as AG's news."""
    path = Path(path)
    rows: list[tuple[str, str]] = []
    try:
        for number, row in enumerate(csv.reader(read_text(path).splitlines(keepends=True)), 1):
            if len(row) < 2:
                raise DataError(
                    f"'{path}', row {number}: {len(row)} columns, expected a class and a text"
                )
            rows.append((row[0], " ".join(row[1:])))
    except csv.Error as error:
        raise DataError(f"'{path}' is not a CSV file: {error}") from None
    if len(rows) < 2:
        raise DataError(f"'{path}' has {len(rows)} rows; give at least two texts")
    classes = tuple(sorted({label for label, _ in rows}))
    x = np.stack([character_codes(body, length) for _, body in rows])
    y = np.array([classes.index(label) for label, _ in rows], np.int32)
    return Dataset(path.stem, x, y, classes).hold_out(max(1, len(rows) // HELD_OUT))


def character_codes(body: str, length: int = LENGTH) -> Array:
    """Positions in ``ALPHABET``, cut or filled up to ``length`` with what stands for none."""
    codes = np.full(length, NONE, np.int32)
    for i, c in enumerate(body[:length].lower()):
        place = ALPHABET.find(c)
        if place >= 0:
            codes[i] = place
    return codes


def _told_apart(parts: Sequence[Array]) -> tuple[Array, Array]:
    """As many samples of each part, with the number of the part as the label."""
    fewest = min(map(len, parts))
    labels = np.repeat(np.arange(len(parts), dtype=np.int32), fewest)
    return np.concatenate([part[:fewest] for part in parts]), labels


def _passages(body: str, length: int) -> Array:
    """Passages that begin every quarter of their length."""
    starts = range(0, len(body) - length, length // 4)
    return np.stack([character_codes(body[i : i + length], length) for i in starts])
