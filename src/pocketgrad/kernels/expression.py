"""OpenCL C of elementwise nodes, at one vector width.

Registers: float types compute in float, int32, uint8 and bool in int, int64 in long. A bool is 0 or
1 in a scalar register and 0 or -1 (a mask) in the lanes of a vector.
"""

from __future__ import annotations

import math
import re

from pocketgrad.base.dtypes import DType, bool_, int64, uint8
from pocketgrad.ops.arithmetic import Cast
from pocketgrad.ops.pointwise import Pointwise


def register(dtype: DType, width: int) -> str:
    """The C type of a register."""
    return dtype.register if width == 1 else f"{dtype.register}{width}"


def literal(value: float, dtype: DType) -> str:
    """A number as scalar C text."""
    if not dtype.is_float:
        return f"{int(value)}{'L' if dtype is int64 else ''}"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return "NAN" if math.isnan(value) else f"{float(value)!r}f"


def extreme(start: float, dtype: DType) -> str:
    """The neutral element of a reduction; infinities become the limits of integer types."""
    if dtype.is_float or not math.isinf(start):
        return literal(start, dtype)
    limit = "LONG" if dtype is int64 else "INT"
    return f"{limit}_{'MAX' if start > 0 else 'MIN'}"


def splat(text: str, dtype: DType, width: int) -> str:
    """A scalar register in all lanes."""
    if width == 1:
        return text
    if dtype is bool_:
        return f"(-(int{width})({text} != 0))"
    return f"(({register(dtype, width)})({text}))"


def load(dtype: DType, width: int, pointer: str, stride: int) -> str:
    """Elements at a pointer, ``stride`` apart, in a register."""
    if width > 1 and stride != 1:
        lanes = ", ".join(load(dtype, 1, f"{pointer} + {i * stride}", 1) for i in range(width))
        packed = f"({register(dtype, width)})({lanes})"
        return f"(-{packed})" if dtype is bool_ else packed
    if dtype.register == "float":
        return f"LOAD({dtype.cl}, {width}, {pointer})"
    raw = f"*({pointer})" if width == 1 else f"vload{width}(0, {pointer})"
    if dtype is bool_:
        return f"(convert_{register(dtype, width)}({raw}) != 0)"
    return f"convert_{register(dtype, width)}({raw})" if dtype is uint8 else f"({raw})"


def store(dtype: DType, width: int, pointer: str, stride: int, name: str) -> str:
    """A statement that writes a register to a pointer."""
    if width > 1 and stride != 1:
        return " ".join(
            store(dtype, 1, f"{pointer} + {i * stride}", 1, f"{name}.s{i:x}") for i in range(width)
        )
    if dtype.register == "float":
        return f"STORE({dtype.cl}, {width}, {name}, {pointer});"
    if dtype is bool_:
        name = f"({name} & 1)"
    if dtype in (bool_, uint8):
        name = f"convert_uchar{width if width > 1 else ''}({name})"
    return f"*({pointer}) = {name};" if width == 1 else f"vstore{width}({name}, 0, {pointer});"


def apply(op: Pointwise, dtypes: tuple[DType, ...], operands: list[str], width: int) -> str:
    """The expression of an op on register operands of the given element types."""
    if isinstance(op, Cast):
        return converted(operands[0], dtypes[0], op.dtype, width)
    names = dict(zip("xyz", operands, strict=False))
    text = re.sub(r"\b[xyz]\b", lambda m: names[m.group()], op.expr)
    return specialise(text, dtypes[-1], width)


def specialise(text: str, dtype: DType, width: int) -> str:
    """Resolve the width-dependent macros of an expression."""
    text = text.replace("WHERE(", "WHERE_1(" if width == 1 else "WHERE_V(")
    text = text.replace("MOD(", "MOD_F(" if dtype.is_float else "MOD_I(")
    return re.sub(r"\bF\(", f"({register(dtype, width)})(", text)


def combine(expr: str, a: str, b: str, dtype: DType, width: int) -> str:
    """The combining expression of a reduction on two registers."""
    names = {"a": a, "b": b}
    return specialise(re.sub(r"\b[ab]\b", lambda m: names[m.group()], expr), dtype, width)


def converted(x: str, source: DType, target: DType, width: int) -> str:
    """A register of one element type as one of another."""
    if target is bool_:
        return x if source is bool_ else f"({x} != 0)"
    if source is bool_:
        x, source_register = f"({x} & 1)", "int"
    else:
        source_register = source.register
    if target is uint8 and source is not uint8:
        return f"(convert_{register(uint8, width)}({x}) & 255)"
    if source_register == target.register:
        return x
    return f"convert_{register(target, width)}({x})"
