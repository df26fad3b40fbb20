"""BERT (Devlin et al. 2018, https://arxiv.org/abs/1810.04805) that finds the answer in a text.

Names are those of Hugging Face's BertForQuestionAnswering, so its weights load. The output
[batch, positions, 2] scores where the answer starts and where it ends: cross-entropy against
[batch, 2] is the mean of both losses.
"""

from __future__ import annotations

from pocketgrad.base.dtypes import int32
from pocketgrad.base.errors import SettingError
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn import init
from pocketgrad.nn.activation import GELU
from pocketgrad.nn.containers import ModuleList
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Embedding, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import LayerNorm
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.attention import scaled_dot_product_attention
from pocketgrad.ops.compare import ne
from pocketgrad.ops.move import reshape, transpose
from pocketgrad.ops.source import iota
from pocketgrad.zoo.blocks import scaled
from pocketgrad.zoo.registry import register

PAPER = "Devlin et al. 2018, BERT: pre-training of deep bidirectional transformers"
TINY = "Turc et al. 2019, Well-read students learn better, https://arxiv.org/abs/1908.08962"
STEPS = TensorType((128,), int32)
INPUTS = (STEPS, STEPS, STEPS)  # tokens, 0 or 1 for question and text, 1 where there is a token
VOCABULARY, POSITIONS, SEGMENTS = 30522, 512, 2
EPS, DROP = 1e-12, 0.1


class Embeddings(Module):
    """The sum of three tables, normalised."""

    def __init__(self, vocabulary: int, size: int, drop: float) -> None:
        super().__init__()
        self.word_embeddings = Embedding(vocabulary, size, padding_idx=0)
        self.position_embeddings = Embedding(POSITIONS, size)
        self.token_type_embeddings = Embedding(SEGMENTS, size)
        self.LayerNorm = LayerNorm(size, EPS)
        self.dropout = Dropout(drop)

    def forward(self, tokens: Value, segments: Value) -> Value:
        x = add(self.word_embeddings(tokens), self.token_type_embeddings(segments))
        x = add(x, self.position_embeddings(iota((tokens.shape[1],), 0)))
        out: Value = self.dropout(self.LayerNorm(x))
        return out


class SelfAttention(Module):
    """Every position looks at all that are present."""

    def __init__(self, size: int, heads: int, drop: float) -> None:
        super().__init__()
        if size % heads:
            raise SettingError(f"{heads} heads do not divide a width of {size}")
        self.query, self.key, self.value = (Linear(size, size) for _ in range(3))
        self.dropout = Dropout(drop)
        self.heads = heads

    def forward(self, x: Value, present: Value | None) -> Value:
        n, length, size = x.shape
        split = (n, length, self.heads, size // self.heads)
        q, k, v = (
            transpose(reshape(part(x), split), (0, 2, 1, 3))
            for part in (self.query, self.key, self.value)
        )
        mixed = scaled_dot_product_attention(q, k, v, mask=present, drop=self.dropout)
        return reshape(transpose(mixed, (0, 2, 1, 3)), x.shape)


class Closing(Module):
    """A linear layer, and a norm of its output and the block's input."""

    def __init__(self, channels: int, size: int, drop: float) -> None:
        super().__init__()
        self.dense = Linear(channels, size)
        self.LayerNorm = LayerNorm(size, EPS)
        self.dropout = Dropout(drop)

    def forward(self, x: Value, shortcut: Value) -> Value:
        out: Value = self.LayerNorm(add(self.dropout(self.dense(x)), shortcut))
        return out


class Attention(Module):
    """Attention and its closing."""

    def __init__(self, size: int, heads: int, drop: float) -> None:
        super().__init__()
        self.add_module("self", SelfAttention(size, heads, drop))
        self.output = Closing(size, size, drop)

    def forward(self, x: Value, present: Value | None) -> Value:
        out: Value = self.output(self.self(x, present), x)
        return out


class Widening(Module):
    """A linear layer to four times the width, and GELU."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.dense = Linear(size, 4 * size)
        self.gelu = GELU()

    def forward(self, x: Value) -> Value:
        out: Value = self.gelu(self.dense(x))
        return out


class Layer(Module):
    """Attention, then two linear layers at every position."""

    def __init__(self, size: int, heads: int, drop: float) -> None:
        super().__init__()
        self.attention = Attention(size, heads, drop)
        self.intermediate = Widening(size)
        self.output = Closing(4 * size, size, drop)

    def forward(self, x: Value, present: Value | None) -> Value:
        x = self.attention(x, present)
        out: Value = self.output(self.intermediate(x), x)
        return out


class Encoder(Module):
    """Layers one after the other."""

    def __init__(self, depth: int, size: int, heads: int, drop: float) -> None:
        super().__init__()
        self.layer = ModuleList(Layer(size, heads, drop) for _ in range(depth))

    def forward(self, x: Value, present: Value | None) -> Value:
        for layer in self.layer:
            x = layer(x, present)
        return x


class Bert(Module):
    """Embeddings and encoder."""

    def __init__(self, depth: int, size: int, heads: int, vocabulary: int, drop: float) -> None:
        super().__init__()
        self.embeddings = Embeddings(vocabulary, size, drop)
        self.encoder = Encoder(depth, size, heads, drop)

    def forward(self, tokens: Value, segments: Value, mask: Value | None) -> Value:
        n, length = tokens.shape
        present = None if mask is None else reshape(ne(mask, 0), (n, 1, 1, length))
        out: Value = self.encoder(self.embeddings(tokens, segments), present)
        return out


class BertForQuestionAnswering(Module):
    """BERT and one linear layer to two scores per position."""

    def __init__(self, depth: int, size: int, heads: int, vocabulary: int, drop: float) -> None:
        super().__init__()
        self.bert = Bert(depth, size, heads, vocabulary, drop)
        self.qa_outputs = Linear(size, 2)
        for part in self.modules():
            if isinstance(part, Linear | Embedding):
                init.normal_(part.weight, 0.0, 0.02)
            if isinstance(part, Linear):
                init.zeros_(part.bias)

    def forward(self, tokens: Value, segments: Value, mask: Value | None = None) -> Value:
        scores: Value = self.qa_outputs(self.bert(tokens, segments, mask))
        return scores


@register(
    "bert-base", paper=PAPER, input=INPUTS, classes=0, params=108_893_186,
    domain="language", task="answer",
)  # fmt: skip
def bert_base(
    width: float = 1.0, vocabulary: int = VOCABULARY, drop: float = DROP
) -> BertForQuestionAnswering:
    """Twelve layers of 768 with twelve heads; without the pooler, which this head does not read."""
    return BertForQuestionAnswering(12, scaled(768, width, 12), 12, vocabulary, drop)


@register(
    "bert-tiny", paper=TINY, input=INPUTS, classes=0, params=4_369_666,
    domain="language", task="answer",
)  # fmt: skip
def bert_tiny(
    width: float = 1.0, vocabulary: int = VOCABULARY, drop: float = DROP
) -> BertForQuestionAnswering:
    """Two layers of 128 with two heads."""
    return BertForQuestionAnswering(2, scaled(128, width, 2), 2, vocabulary, drop)
