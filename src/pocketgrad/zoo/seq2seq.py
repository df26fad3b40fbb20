"""Translation with LSTMs and attention (Luong et al. 2015, https://arxiv.org/abs/1508.04025).

Global attention with the "general" score, not fed back into the LSTM, so that training runs it once
for all steps. Vocabularies are those of IWSLT'15 English to Vietnamese; token 0 is padding.
"""

from __future__ import annotations

from typing import NamedTuple

from pocketgrad.base.dtypes import int32
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn import init
from pocketgrad.nn.layers import Embedding, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.recurrent import LSTM
from pocketgrad.ops.attention import scaled_dot_product_attention
from pocketgrad.ops.compare import ne
from pocketgrad.ops.move import concat, reshape, swap
from pocketgrad.ops.transcendental import tanh
from pocketgrad.zoo.blocks import scaled
from pocketgrad.zoo.registry import register

PAPER = "Luong et al. 2015, Effective approaches to attention-based neural machine translation"
PADDING = 0
STEPS = TensorType((40,), int32)

State = tuple[Value, Value]


class Memory(NamedTuple):
    """What the decoder knows of a source: a vector and whether it counts, per position."""

    vectors: Value  # [batch, positions, size]
    present: Value  # bool [batch, 1, positions]


class Seq2Seq(Module):
    """Encoder and decoder; forward() is teacher forcing: target tokens in, scores of the next out.

    For decoding a token at a time call ``encode`` once and ``decode`` with the state it gave.
    """

    def __init__(self, source: int, target: int, size: int, layers: int, drop: float) -> None:
        super().__init__()
        self.source_embedding = Embedding(source, size, padding_idx=PADDING)
        self.target_embedding = Embedding(target, size, padding_idx=PADDING)
        self.encoder = LSTM(size, size, layers, batch_first=True, dropout=drop)
        self.decoder = LSTM(size, size, layers, batch_first=True, dropout=drop)
        self.score = Linear(size, size, bias=False)
        self.mix = Linear(2 * size, size, bias=False)
        self.head = Linear(size, target, bias=False)
        for parameter in self.parameters():
            init.uniform_(parameter, -0.1, 0.1)

    def forward(self, source: Value, target: Value) -> Value:
        """Scores [batch, tokens, steps], as the cross-entropy takes them."""
        memory, state = self.encode(source)
        scores, _ = self.decode(target, memory, state)
        return scores

    def encode(self, source: Value) -> tuple[Memory, State]:
        """Tokens [batch, positions] to what the decoder attends to, and its first state."""
        vectors, state = self.encoder(self.source_embedding(source))
        n, length = source.shape
        return Memory(vectors, reshape(ne(source, PADDING), (n, 1, length))), state

    def decode(self, target: Value, memory: Memory, state: State) -> tuple[Value, State]:
        """Scores of the tokens that follow those given, and the state after the last."""
        seen, state = self.decoder(self.target_embedding(target), state)
        keys = self.score(memory.vectors)
        context = scaled_dot_product_attention(
            seen, keys, memory.vectors, mask=memory.present, scale=1.0
        )
        mixed = tanh(self.mix(concat([context, seen], axis=2)))
        return swap(self.head(mixed), 1, 2), state


@register(
    "seq2seq", paper=PAPER, input=(STEPS, STEPS), classes=7709, params=25_887_232,
    domain="language", task="translate",
)  # fmt: skip
def seq2seq(
    classes: int = 7709,
    source: int = 17191,
    width: float = 1.0,
    layers: int = 2,
    drop: float = 0.2,
) -> Seq2Seq:
    """Two layers of 512; ``classes`` and ``source`` are the sizes of the vocabularies."""
    return Seq2Seq(source, classes, scaled(512, width), layers, drop)
