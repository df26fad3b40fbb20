"""Small files of the kinds that the data readers take, written without an image library."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array

IDX_STEMS = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's number, by bytes per pixel


def idx_bytes(values: Array) -> bytes:
    """A uint8 array in IDX format."""
    return (
        bytes([0, 0, 8, values.ndim])
        + struct.pack(f">{values.ndim}I", *values.shape)
        + bytes(values)
    )


def write_idx_folder(folder: Path, train: int = 20, test: int = 10, packed: bool = True) -> Path:
    """Four files in MNIST's layout with images of 5 x 4; label = row number modulo 10."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for stem, n in zip(IDX_STEMS, (train, train, test, test), strict=True):
        images = "images" in stem
        values = rng.integers(0, 256, (n, 5, 4)) if images else np.arange(n) % 10
        body = idx_bytes(values.astype(np.uint8))
        path = folder / (f"{stem}.gz" if packed else stem)
        path.write_bytes(gzip.compress(body, mtime=0) if packed else body)
    return folder


def write_cifar_folder(folder: Path, records: int = 4) -> Path:
    """CIFAR-10's six binary files with a few records each; label = record number."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for stem in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        body = rng.integers(0, 256, (records, 3073)).astype(np.uint8)
        body[:, 0] = np.arange(records) % 10
        (folder / f"{stem}.bin").write_bytes(bytes(body))
    return folder


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """A chunk with length and check sum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_bytes(
    pixels: Array, filters: tuple[int, ...] = (0,), palette: bytes = b"", depth: int = 8
) -> bytes:
    """A PNG of ``pixels[H, W, bytes]``, its lines filtered by the given kinds in turn."""
    height, width, pixel_nbytes = pixels.shape
    lines, above = b"", [0] * (width * pixel_nbytes)
    for r in range(height):
        kind, line = filters[r % len(filters)], [int(v) for v in pixels[r].ravel()]
        lines += bytes([kind, *_filtered(line, above, pixel_nbytes, kind)])
        above = line
    colour = 3 if palette else _COLOUR_TYPES[pixel_nbytes]
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    colours = png_chunk(b"PLTE", palette) if palette else b""
    packed = png_chunk(b"IDAT", zlib.compress(lines))
    return (
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + colours + packed + png_chunk(b"IEND", b"")
    )


def _filtered(line: list[int], above: list[int], pixel_nbytes: int, kind: int) -> list[int]:
    """As the PNG standard words it, byte by byte."""
    out = []
    for i, value in enumerate(line):
        left = line[i - pixel_nbytes] if i >= pixel_nbytes else 0
        up, corner = above[i], above[i - pixel_nbytes] if i >= pixel_nbytes else 0
        guess = left + up - corner
        paeth = min((left, up, corner), key=lambda v: abs(guess - v))
        out.append((value - (0, left, up, (left + up) // 2, paeth)[kind]) % 256)
    return out


def write_image_folder(folder: Path, classes: tuple[str, ...] = ("cat", "dog"), n: int = 3) -> Path:
    """``n`` colour PNGs of 6 x 5 per class; all values of an image are 10 x class + number."""
    for k, name in enumerate(classes):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            pixels = np.full((6, 5, 3), 10 * k + i, np.uint8)
            (folder / name / f"{i}.png").write_bytes(png_bytes(pixels))
    return folder
