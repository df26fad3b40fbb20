"""Numbers as devices write them. Each parser takes text and raises ValueError for garbage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*(?:%|[A-Za-z]+)?\s*")


def number(text: str) -> float:
    """A number, perhaps with a unit behind it: '37 %', '32760 ma', '-12'."""
    try:
        return float(int(text))  # nearly always
    except ValueError:
        match = _NUMBER.fullmatch(text)
    if not match:
        raise ValueError(text)
    return float(match[1])


def scaled(factor: float) -> Callable[[str], float]:
    """A parser for a number that is written in another unit: micro, milli, kilo."""

    def parse(text: str) -> float:
        return number(text) * factor

    return parse


def at_least(low: float, parse: Callable[[str], float], reason: str) -> Callable[[str], float]:
    """A parser that refuses values below ``low``: counters and shares that cannot be negative."""

    def checked(text: str) -> float:
        value = parse(text)
        if value < low:
            raise ValueError(reason)
        return value

    return checked


def share(text: str) -> float:
    """A utilisation in percent: '37', '37 %', and the first of '37@300000000Hz' or '37 0 63'."""
    value = number(re.split(r"[@\s]", text.strip(), maxsplit=1)[0])
    if not 0 <= value <= 100:
        raise ValueError(text)
    return value


def integer_list(text: str) -> list[int]:
    """A list in the kernel's form: '0-1,4' is 0, 1, 4."""
    numbers: list[int] = []
    for part in text.replace(",", " ").split():
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def fields(text: str, separator: str = ":") -> Iterator[tuple[str, str]]:
    """The pairs of lines such as 'VmRSS:   5840 kB'."""
    for line in text.splitlines():
        name, found, value = line.partition(separator)
        if found:
            yield name.strip(), value.strip()
