"""The IDX format of the MNIST family: magic, sizes, values; plain or gzip.

Layout, big-endian: 0 0 <type> <rank>, then one uint32 per axis, then the values, last axis fastest.
"""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.files import opened, read_up_to

_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MAX_RANK = 4
_MAX_NBYTES = 1 << 40  # more than any real file: such a header is damage, not data


def read_idx(path: Path, rank: int | None = None) -> Array:
    """The array in an IDX file; with ``rank``, an error when it has another number of axes."""
    with opened(path) as file:
        head = read_up_to(file, path, 4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _DTYPES:
            raise DataError(
                f"'{path}' is not an IDX file: it begins with {head.hex(' ') or 'nothing'}, "
                "expected 00 00, then a type from 08 to 0e and the number of axes"
            )
        axes = head[3]
        if not 1 <= axes <= _MAX_RANK or (rank is not None and axes != rank):
            wanted = f"1 to {_MAX_RANK}" if rank is None else str(rank)
            raise DataError(f"'{path}' has {axes} axes (byte 3), expected {wanted}")
        sizes = read_up_to(file, path, 4 * axes)
        if len(sizes) < 4 * axes:
            raise DataError(f"'{path}' is cut off in its header, at byte {4 + len(sizes)}")
        shape = struct.unpack(f">{axes}I", sizes)
        dtype = np.dtype(_DTYPES[head[2]])
        expected = prod(shape) * dtype.itemsize
        if expected > _MAX_NBYTES:
            raise DataError(f"'{path}' claims the shape {list(shape)} in bytes 4 to {3 + 4 * axes}")
        body = read_up_to(file, path, expected + 1)
    _check_length(path, shape, 4 + 4 * axes, expected, len(body))
    values = np.frombuffer(body, dtype).reshape(shape)
    return values.astype(dtype.newbyteorder("="), copy=False)


def _check_length(path: Path, shape: tuple[int, ...], head: int, expected: int, got: int) -> None:
    if got == expected:
        return
    if got > expected:
        raise DataError(
            f"'{path}' goes on after its {shape[0]} records, which end at byte {head + expected}; "
            "it is not what its header says"
        )
    record = got // (expected // shape[0])
    raise DataError(
        f"'{path}' is cut off: its header says {shape[0]} records, it ends at byte {head + got} "
        f"in record {record} (counted from 0); fetch it again"
    )
