"""Images changed at random while they train: shifted, mirrored, in another light. On the device.

Random numbers are a function of (seed, step, sample), as for dropout: no image is made beforehand,
and training that was interrupted sees the same ones. Evaluation and prediction change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from pocketgrad.base.dtypes import float32, int32
from pocketgrad.base.errors import SettingError, ShapeError
from pocketgrad.ir.core import Value
from pocketgrad.ops.arithmetic import add, cast, floor, mul, sub
from pocketgrad.ops.compare import lt, where
from pocketgrad.ops.embed import gather
from pocketgrad.ops.extremes import mean
from pocketgrad.ops.source import constant, iota, uniform

STREAM = 1 << 20  # layers count theirs from 1


@dataclass(frozen=True)
class Augment:
    """What may happen to an image [C, H, W]: all of it to each one, by how much at random.

    ``crop``: shifted by up to so many pixels both ways, the rest black, as cropping a padded image
    does. ``colour``: brightness and contrast times 1 ± this much.
    """

    flip: bool = False
    crop: int = 0
    colour: float = 0.0

    def __post_init__(self) -> None:
        if self.crop < 0:
            raise SettingError(f"crop {self.crop}: choose 0 (no shift) or more pixels")
        if not 0 <= self.colour < 1:
            raise SettingError(f"colour {self.colour}: choose from 0 (as it is) to below 1")

    @staticmethod
    def parse(text: str) -> Augment:
        """From words as in ``flip,crop:4,colour:0.2``."""
        found: dict[str, float] = {}
        for word in filter(None, text.split(",")):
            name, _, amount = word.partition(":")
            try:
                found[name] = {"flip": 1.0, "crop": 4.0, "colour": 0.2}[name]
                found[name] = float(amount) if amount else found[name]
            except (KeyError, ValueError):
                raise SettingError(
                    f"'{word}' is no augmentation; give words like flip,crop:4,colour:0.2"
                ) from None
        return Augment(
            bool(found.get("flip", 0)), int(found.get("crop", 0)), found.get("colour", 0.0)
        )

    def moved(self, x: Value, seed: Value, step: Value) -> Value:
        """Images as stored, [N, C, H, W], shifted and mirrored."""
        if not self.flip and not self.crop:
            return x
        if len(x.shape) != 4:
            raise ShapeError(f"only images [N, C, H, W] are shifted or mirrored, x is {x.type}")
        n, _, height, width = x.shape
        column, row = iota((1, 1, 1, width), 3), iota((1, 1, height, 1), 2)
        if self.flip:
            mirrored = lt(uniform((n, 1, 1, 1), seed, step, STREAM), 0.5)
            column = where(mirrored, sub(width - 1, column), column)
        if self.crop:
            row = add(row, self._shift(n, seed, step, 1))
            column = add(column, self._shift(n, seed, step, 2))
            x = gather(x, add(constant(0, int32, x.shape), row), 2)  # outside is read as 0
        return gather(x, add(constant(0, int32, x.shape), column), 3)

    def coloured(self, x: Value, seed: Value, step: Value) -> Value:
        """Images as the model sees them, in another light."""
        if not self.colour:
            return x
        if len(x.shape) != 4 or x.dtype is not float32:
            raise ShapeError(f"only images [N, C, H, W] have a colour, x is {x.type}")
        brightness, contrast = (
            add(
                mul(uniform((x.shape[0], 1, 1, 1), seed, step, STREAM + i), 2 * self.colour),
                1.0 - self.colour,
            )
            for i in (3, 4)
        )
        middle = mean(x, (1, 2, 3), keepdims=True)
        return add(mul(sub(x, middle), contrast), mul(middle, brightness))

    def _shift(self, n: int, seed: Value, step: Value, which: int) -> Value:
        drawn = uniform((n, 1, 1, 1), seed, step, STREAM + which)
        return cast(sub(floor(mul(drawn, float(2 * self.crop + 1))), float(self.crop)), int32)
