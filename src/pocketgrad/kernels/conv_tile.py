"""The register tile of a channels-last convolution: pixels of a row by vectors of channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from pocketgrad.kernels.conv import Problem, Taps

MOST_PIXELS, MANY_PIXELS = 14, 4
APART, MASKED = 0.03, 1.3  # the price of another image in a tile, and of a tap that is masked
REGISTERS = 32  # vector registers of AVX-512 and NEON; more values than that go through memory


@dataclass(frozen=True)
class Tile:
    """``tn`` images by ``tw`` pixels of a row, by ``nv`` vectors of ``vw`` channels."""

    vw: int
    nv: int
    tw: int
    tn: int

    @property
    def pixels(self) -> int:
        """Pixels of a tile."""
        return self.tw * self.tn

    @property
    def channels(self) -> int:
        """Channels of a tile."""
        return self.nv * self.vw

    @property
    def registers(self) -> int:
        """Sums, weights, and one number of the image."""
        return self.pixels * self.nv + self.nv + 1

    def pixel_tiles(self, p: Problem) -> int:
        """Tiles that cover all pixels."""
        return ceil(p.n / self.tn) * p.rows.count * ceil(p.columns.count / self.tw)

    def channel_tiles(self, p: Problem) -> int:
        """Tiles that cover the channels of a group."""
        return ceil(p.outputs / self.channels)

    def cycles(self, p: Problem) -> float:
        """What a product of all channels and pixels costs, from measurements on AVX-512: arithmetic
        or waiting for the last result, some of the loads, and pixels that have no register left."""
        per_tile = max(self.pixels * self.nv / 2, 1.5 * self.nv, 4.0)
        per_tile += 0.1 * (self.pixels + self.nv)
        if self.nv > 1:  # else a multiplication repeats its number for all lanes itself
            per_tile += max(0, self.pixels - MANY_PIXELS)
        rows = ceil(p.n / self.tn) * p.rows.count * (1 + APART * (self.tn - 1))
        return per_tile * rows * _row(p.columns, self.tw) * self.channel_tiles(p)


def _row(columns: Taps, tw: int) -> float:
    """Tiles of a row times the share of taps that each computes; masked ones cost more."""
    total = 0.0
    for start in range(0, columns.count, tw):
        for tap in range(columns.number):
            at = (
                columns.first + min(start, columns.count - tw) * columns.stride + tap * columns.step
            )
            end = at + (tw - 1) * columns.stride
            if end >= 0 and at < columns.size:
                total += 1.0 if at >= 0 and end < columns.size else MASKED
    return total / max(1, columns.number)


def best_tile(p: Problem, width: int, least: tuple[int, int]) -> Tile:
    """The cheapest tile, for rows of at least ``least[0]`` pixels and ``least[1]`` images."""
    vw = next((w for w in (1, 2, 4, 8) if w >= p.outputs and w <= width), width)
    return min(_tiles(vw, least), key=lambda t: t.cycles(p))


def _tiles(vw: int, least: tuple[int, int]) -> Iterator[Tile]:
    for nv in (4, 2, 3, 5, 6, 7, 1):
        for tw in (4, 5, 6, 7, 8, 14, 12, 10, 3, 2, 1):
            for tn in (1, 2, 3, 4, 6, 8, 12):
                tile = Tile(vw, nv, tw, tn)
                fits = tile.registers <= REGISTERS and tile.pixels <= MOST_PIXELS
                if fits and tw <= least[0] and tn <= least[1]:
                    yield tile
