"""One image file to an array. PNG, PPM and PGM are read here; other kinds need Pillow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.files import read_whole
from pocketgrad.data.png import png_header, read_png

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
_NETPBM = (".pgm", ".ppm")
# Magic, width, height, largest value; comments may stand between; one white byte, then pixels.
_NETPBM_HEAD = re.compile(rb"P([56])" + rb"(?:\s|#[^\n]*\n)+(\d+)" * 3 + rb"\s")
_HEAD_NBYTES = 1024  # more than the header of a PNG, or of a PPM with some comments
_LUMA = np.array([19595, 38470, 7471])  # ITU-R 601 in units of 2^-16, rounded so that they sum to 1


def image_shape(path: Path) -> tuple[int, int, int]:
    """Channels (1 or 3), height and width, from the first bytes of the file."""
    if path.suffix.lower() == ".png":
        return png_header(path, _head(path)).shape
    if path.suffix.lower() in _NETPBM:
        return _netpbm_shape(path, _head(path))[0]
    with _pillow_open(path) as image:
        return (1 if image.mode in ("1", "L", "LA") else 3), image.height, image.width


def read_image(path: Path) -> Array:
    """The pixels, uint8 ``[C, H, W]``, C being 1 for grey and 3 for colour."""
    if path.suffix.lower() == ".png" and png_header(path, _head(path)).plain:
        return read_png(path)
    if path.suffix.lower() in _NETPBM:
        return _read_netpbm(path)
    with _pillow_open(path) as image:
        grey = image.mode in ("1", "L", "LA")
        try:
            pixels = np.asarray(image.convert("L" if grey else "RGB"))
        except OSError as error:
            raise DataError(f"'{path}' cannot be read as an image: {error}") from error
    return pixels[None] if grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def with_channels(image: Array, channels: int) -> Array:
    """The image as grey (1) or colour (3)."""
    if image.shape[0] == channels:
        return image
    if channels == 3:
        return np.repeat(image, 3, axis=0)
    luma = np.tensordot(_LUMA, image.astype(np.int64), axes=1) + (1 << 15)
    grey: Array = (luma >> 16).astype(np.uint8)
    return grey[None]


def resized(image: Array, height: int, width: int) -> Array:
    """The image in another size: linear interpolation, widened where it shrinks (no aliasing)."""
    rows, columns = _weights(image.shape[1], height), _weights(image.shape[2], width)
    values: Array = np.rint(rows @ image.astype(np.float64) @ columns.T)
    return values.astype(np.uint8)


def _weights(old: int, new: int) -> Array:
    """Triangle filter as a matrix ``[new, old]`` whose rows sum to 1."""
    scale = old / new
    centres = (np.arange(new) + 0.5) * scale - 0.5
    distance = np.abs(centres[:, None] - np.arange(old)[None, :]) / max(scale, 1.0)
    weights: Array = np.maximum(0.0, 1.0 - distance)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_NBYTES)
    except OSError as error:
        raise DataError(f"cannot read '{path}': {error.strerror or error}") from error


def _netpbm_shape(path: Path, head: bytes) -> tuple[tuple[int, int, int], int]:
    """Channels, height and width, and where the pixels begin."""
    match = _NETPBM_HEAD.match(head)
    if match is None or int(match[4]) != 255:
        raise DataError(f"'{path}' is not a binary PGM (P5) or PPM (P6) file with values up to 255")
    channels = 1 if match[1] == b"5" else 3
    return (channels, int(match[3]), int(match[2])), match.end()


def _read_netpbm(path: Path) -> Array:
    body = read_whole(path)
    (c, h, w), start = _netpbm_shape(path, body[:_HEAD_NBYTES])
    if len(body) - start < c * h * w:
        raise DataError(
            f"'{path}' is cut off: it ends at byte {len(body)}, expected {start + c * h * w}"
        )
    pixels = np.frombuffer(body, np.uint8, c * h * w, start).reshape(h, w, c)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _pillow_open(path: Path) -> Any:  # Any: Pillow is optional, its types may be absent
    try:
        from PIL import Image  # type: ignore[import-not-found,unused-ignore]  # an extra
    except ImportError as error:
        raise DataError(
            f"reading '{path}' needs Pillow: pip install 'pocketgrad[images]'; "
            "without it 8-bit PNG, PPM and PGM are read"
        ) from error
    try:
        return Image.open(path)
    except OSError as error:
        raise DataError(f"'{path}' cannot be read as an image: {error}") from error
