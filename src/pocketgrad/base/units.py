"""Numbers as people read them: bytes in powers of ten, counts, durations."""

from __future__ import annotations

_PREFIXES = ("", "k", "M", "G", "T")


def si(value: float, unit: str = "") -> str:
    """Three significant digits and a decimal prefix: ``si(1234567, 'B')`` is '1.23 MB'."""
    step = 0
    while abs(value) >= 999.5 and step < len(_PREFIXES) - 1:
        value /= 1000
        step += 1
    digits = 0 if step == 0 and value == int(value) else max(0, 3 - len(str(int(abs(value)))))
    return f"{value:.{digits}f} {_PREFIXES[step]}{unit}".rstrip()


def duration(seconds: float) -> str:
    """A duration: '1.5 µs', '12 ms', '3.2 s', '2:05 min', '1:02:05 h'."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d} h"
