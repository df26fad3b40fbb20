"""Multi-head attention with PyTorch's parameters."""

from __future__ import annotations

from pocketgrad.base.dtypes import bool_
from pocketgrad.base.errors import DtypeError, SettingError, ShapeError
from pocketgrad.ir.core import Value
from pocketgrad.nn import init
from pocketgrad.nn.dropout import dropped
from pocketgrad.nn.layers import Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.parameter import Parameter
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.attention import scaled_dot_product_attention
from pocketgrad.ops.compare import logical_and, logical_not
from pocketgrad.ops.linalg import matmul
from pocketgrad.ops.move import reshape, slice_, swap, transpose


class MultiheadAttention(Module):
    """Queries [L, N, E] look at keys [S, N, kdim]; [N, L, E] with ``batch_first``.

    Returns (output, None), as PyTorch does with ``need_weights=False``: the shares are not kept.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise SettingError(f"{num_heads} heads do not divide embed_dim {embed_dim}")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.dropout, self.batch_first = dropout, batch_first
        widths = (embed_dim, kdim or embed_dim, vdim or embed_dim)
        self.joint = widths == (embed_dim,) * 3
        weights = {f"{n}_proj_weight": (embed_dim, w) for n, w in zip("qkv", widths, strict=True)}
        if self.joint:
            weights = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        for name, shape in weights.items():
            self.register_parameter(name, Parameter(shape=shape, init=init.xavier_uniform))
        shift = Parameter(shape=(3 * embed_dim,), init=init.zeros) if bias else None
        self.register_parameter("in_proj_bias", shift)
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if bias:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Value,
        key: Value,
        value: Value,
        key_padding_mask: Value | None = None,
        need_weights: bool = False,
        attn_mask: Value | None = None,
        is_causal: bool = False,
    ) -> tuple[Value, None]:
        """Where a bool mask is true a query may not look; a float one is added to the scores."""
        if need_weights:
            raise SettingError("attention shares are not kept; call with need_weights=False")
        q, k, v = (self._heads(x, i) for i, x in enumerate((query, key, value)))
        mask = self._mask(attn_mask, key_padding_mask)
        drop = (lambda x: dropped(x, self.dropout)) if self.training and self.dropout else None
        mixed = scaled_dot_product_attention(q, k, v, mask=mask, causal=is_causal, drop=drop)
        joined = transpose(mixed, (0, 2, 1, 3))
        joined = reshape(joined, (*joined.shape[:2], self.embed_dim))
        out: Value = self.out_proj(joined if self.batch_first else swap(joined, 0, 1))
        return out, None

    def _heads(self, x: Value, part: int) -> Value:
        """One of query, key and value as [N, heads, steps, size of a head]."""
        if len(x.shape) != 3:
            axes = "[batch, steps, size]" if self.batch_first else "[steps, batch, size]"
            raise ShapeError(f"MultiheadAttention takes {axes}, got {x.type}")
        rows = (part * self.embed_dim, (part + 1) * self.embed_dim)
        weight: Value = (
            slice_(self.in_proj_weight, 0, *rows)
            if self.joint
            else getattr(self, f"{'qkv'[part]}_proj_weight")
        )
        y = matmul(x if self.batch_first else swap(x, 0, 1), weight, transpose_b=True)
        if self.in_proj_bias is not None:
            y = add(y, slice_(self.in_proj_bias, 0, *rows))
        split = (*y.shape[:2], self.num_heads, self.embed_dim // self.num_heads)
        return transpose(reshape(y, split), (0, 2, 1, 3))

    def _mask(self, attn_mask: Value | None, padding: Value | None) -> Value | None:
        """Both masks as the operation takes them: true where a query may look."""
        allowed = None
        if attn_mask is not None:
            if len(attn_mask.shape) == 3:  # [N · heads, L, S]
                lead = (attn_mask.shape[0] // self.num_heads, self.num_heads)
                attn_mask = reshape(attn_mask, (*lead, *attn_mask.shape[1:]))
            allowed = logical_not(attn_mask) if attn_mask.dtype is bool_ else attn_mask
        if padding is None:
            return allowed
        if padding.dtype is not bool_ or (allowed is not None and allowed.dtype is not bool_):
            raise DtypeError("with a key_padding_mask both masks must be bool")
        present = logical_not(reshape(padding, (padding.shape[0], 1, 1, padding.shape[1])))
        return present if allowed is None else logical_and(present, allowed)
