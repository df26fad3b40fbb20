"""Enlarging images [N, C, H, W]."""

from __future__ import annotations

from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import Value
from pocketgrad.nn.conv import Size, both
from pocketgrad.nn.module import Module
from pocketgrad.ops.resize import upsample_bilinear2d, upsample_nearest2d


class Upsample(Module):
    """To a size or by a factor, by the nearest neighbour or bilinearly."""

    def __init__(
        self,
        size: Size | None = None,
        scale_factor: float | tuple[float, float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise SettingError("Upsample takes either size or scale_factor")
        if mode not in {"nearest", "bilinear"}:
            raise SettingError(f"Upsample's mode is 'nearest' or 'bilinear', not '{mode}'")
        if mode == "nearest" and align_corners is not None:
            raise SettingError("Upsample: align_corners needs mode='bilinear'")
        self.size, self.scale_factor = size, scale_factor
        self.mode, self.align_corners = mode, bool(align_corners)

    def forward(self, x: Value) -> Value:
        size = self._size(x)
        if self.mode == "nearest":
            return upsample_nearest2d(x, size)
        return upsample_bilinear2d(x, size, self.align_corners)

    def _size(self, x: Value) -> tuple[int, int]:
        if self.size is not None:
            return both(self.size)
        factor = self.scale_factor
        assert factor is not None
        factors = factor if isinstance(factor, tuple) else (factor, factor)
        h, w = (n * f for n, f in zip(x.shape[-2:], factors, strict=True))
        if h != int(h) or w != int(w):
            raise SettingError(f"scale_factor {factor} of {x.type} gives {h} × {w}; give a size")
        return int(h), int(w)

    def extra_repr(self) -> str:
        given = f"size={self.size}" if self.size else f"scale_factor={self.scale_factor}"
        return f"{given}, mode={self.mode!r}"
