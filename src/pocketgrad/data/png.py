"""Read PNG without an image library: 8 bits per channel, not interlaced; the rest needs Pillow.

The line filters are undone along diagonals of the image: pixel (r, p) depends on its left, upper
and upper left neighbour only, so all pixels with the same r + p can be computed at once.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pocketgrad.base.dtypes import Array
from pocketgrad.base.errors import DataError
from pocketgrad.data.files import read_whole

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER_NBYTES = 33  # signature, and the IHDR chunk with length, type and check sum
_PALETTE = 3
_BYTES_PER_PIXEL = {0: 1, 2: 3, _PALETTE: 1, 4: 2, 6: 4}  # by colour type
_CHANNELS = {0: 1, 2: 3, _PALETTE: 3, 4: 1, 6: 3}  # what is given back: without transparency
_AVERAGE = 3
_PAETH = 4


@dataclass(frozen=True, slots=True)
class PngHeader:
    """What the first chunk says."""

    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    @property
    def plain(self) -> bool:
        """Whether it is of the kind read here."""
        return self.depth == 8 and self.colour in _BYTES_PER_PIXEL and not self.interlaced

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels (1 grey, 3 colour), height, width."""
        return _CHANNELS.get(self.colour, 3), self.height, self.width


def png_header(path: Path, head: bytes) -> PngHeader:
    """The header from the first bytes of the file."""
    if len(head) < _HEADER_NBYTES or not head.startswith(SIGNATURE) or head[12:16] != b"IHDR":
        raise DataError(f"'{path}' is not a PNG file, or is cut off in its first 33 bytes")
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", head[16:29])
    if not width or not height:
        raise DataError(f"'{path}' says it is {width} x {height} pixels (byte 16)")
    return PngHeader(width, height, depth, colour, interlace != 0)


def read_png(path: Path) -> Array:
    """The pixels, uint8 ``[C, H, W]``; transparency is left out."""
    body = read_whole(path)
    header = png_header(path, body[:_HEADER_NBYTES])
    if not header.plain:
        raise DataError(
            f"'{path}' is a PNG of {header.depth} bits, colour type {header.colour}"
            f"{', interlaced' if header.interlaced else ''}; without Pillow only 8 bits per "
            "channel, not interlaced, is read: pip install 'pocketgrad[images]'"
        )
    palette, packed = _chunks(path, body)
    width, height = header.width, header.height
    pixel_nbytes = _BYTES_PER_PIXEL[header.colour]
    expected = height * (1 + width * pixel_nbytes)
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed, expected + 1)
    except zlib.error as error:
        raise DataError(f"'{path}' has damaged pixel data: {error}") from error
    if len(raw) != expected:
        raise DataError(
            f"'{path}' is cut off or damaged: {len(raw)} bytes of pixel data, expected {expected}; "
            f"it ends in line {len(raw) // (1 + width * pixel_nbytes)} of {height}"
        )
    lines = np.frombuffer(raw, np.uint8).reshape(height, 1 + width * pixel_nbytes)
    if lines[:, 0].max() > _PAETH:
        line = int(np.argmax(lines[:, 0] > _PAETH))
        raise DataError(f"'{path}' has unknown filter {lines[line, 0]} in line {line}")
    pixels = _unfilter(lines[:, 1:].reshape(height, width, pixel_nbytes), lines[:, 0])
    if header.colour == _PALETTE:
        pixels = _looked_up(path, pixels[:, :, 0], palette)
    return np.ascontiguousarray(pixels[:, :, : header.shape[0]].transpose(2, 0, 1))


def _chunks(path: Path, body: bytes) -> tuple[bytes, bytes]:
    """The palette, and all pixel data in one piece; the check sum of each chunk is checked."""
    palette, packed, at = b"", [], len(SIGNATURE)
    while at + 12 <= len(body):
        (nbytes,) = struct.unpack_from(">I", body, at)
        kind, end = body[at + 4 : at + 8], at + 12 + nbytes
        if end > len(body):
            break
        (stored,) = struct.unpack_from(">I", body, end - 4)
        if zlib.crc32(memoryview(body)[at + 4 : end - 4]) != stored:
            raise DataError(f"'{path}' is damaged: the chunk at byte {at} has a wrong check sum")
        if kind == b"PLTE":
            palette = body[at + 8 : end - 4]
        elif kind == b"IDAT":
            packed.append(body[at + 8 : end - 4])
        elif kind == b"IEND":
            return palette, b"".join(packed)
        at = end
    raise DataError(f"'{path}' is cut off: it ends at byte {len(body)} in the chunk at byte {at}")


def _looked_up(path: Path, picks: Array, palette: bytes) -> Array:
    colours = np.frombuffer(palette[: len(palette) // 3 * 3], np.uint8).reshape(-1, 3)
    if int(picks.max()) >= len(colours):
        raise DataError(f"'{path}' uses colour {picks.max()} of a palette of {len(colours)}")
    return colours[picks]


def _unfilter(raw: Array, filters: Array) -> Array:
    """Undo the filters of lines ``raw[height, width, bytes]``, walking the diagonals."""
    height, width, pixel_nbytes = raw.shape
    if not filters.any():
        return raw
    out = np.empty_like(raw)
    flat_in, flat_out = raw.reshape(-1, pixel_nbytes), out.reshape(-1, pixel_nbytes)
    # Element p + 1 is pixel (d - p, p) of diagonal d; places outside the image stay 0.
    before = np.zeros((width + 1, pixel_nbytes), np.int16)
    before2 = np.zeros_like(before)
    for d in range(height + width - 1):
        low, high = max(0, d - height + 1), min(width - 1, d) + 1
        kinds = filters[d - high + 1 : d - low + 1][::-1, None]
        left, up, corner = before[low:high], before[low + 1 : high + 1], before2[low:high]
        # From (d - low, low) up and to the right: one line less, one pixel more.
        here = slice((d - low) * width + low, None, 1 - width) if width > 1 else slice(d, None)
        predicted = _predict(kinds, left, up, corner)
        values = (flat_in[here][: high - low] + predicted) & 0xFF
        flat_out[here][: high - low] = values
        before2, before = before, np.zeros_like(before)
        before[low + 1 : high + 1] = values
    return out


def _predict(kinds: Array, left: Array, up: Array, corner: Array) -> Array:
    """The prediction of each pixel by the filter of its line: none, left, up, average, Paeth."""
    to_left, to_up = np.abs(up - corner), np.abs(left - corner)
    to_corner = np.abs(left + up - 2 * corner)
    nearest = np.where(to_up <= to_corner, up, corner)
    paeth = np.where((to_left <= to_up) & (to_left <= to_corner), left, nearest)
    return np.choose(kinds, [np.zeros_like(left), left, up, (left + up) >> 1, paeth])
