"""Networks that read characters.

- ``char-lstm`` predicts the next one (Karpathy 2015, The unreasonable effectiveness of recurrent
  neural networks, https://karpathy.github.io/2015/05/21/rnn-effectiveness/), on Shakespeare.
- ``char-cnn`` classifies texts (Zhang et al. 2015, https://arxiv.org/abs/1509.01626), small model.
- ``char-cnn-lstm`` is what Liu et al. train under the name Char-CNN: convolution and LSTM, two
  layers, 1 M parameters, Shakespeare; sizes are ours, since they print no more than this.

Models that predict give [batch, characters, steps], as the cross-entropy takes it.
"""

from __future__ import annotations

from pocketgrad.base.dtypes import int32
from pocketgrad.ir.core import TensorType, Value
from pocketgrad.nn import init
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv1d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Embedding, Flatten, Linear
from pocketgrad.nn.module import Module
from pocketgrad.nn.recurrent import LSTM
from pocketgrad.ops.embed import one_hot
from pocketgrad.ops.move import pad, reshape, swap
from pocketgrad.ops.pool import max_pool2d
from pocketgrad.ops.transcendental import relu
from pocketgrad.zoo.blocks import scaled
from pocketgrad.zoo.registry import register

KARPATHY = "Karpathy 2015, The unreasonable effectiveness of recurrent neural networks"
ZHANG = "Zhang et al. 2015, Character-level convolutional networks for text classification"
LIU = "Liu et al., Training on mobile devices (NVIDIA TX2), table II, Char-CNN"
STEPS = TensorType((64,), int32)
SHAKESPEARE = 65  # different characters in the usual extract

ALPHABET, LENGTH = 70, 1014  # of char-cnn


class CharLSTM(Module):
    """Embedding, LSTM, and a linear layer at every step."""

    def __init__(self, classes: int, size: int, layers: int, drop: float) -> None:
        super().__init__()
        self.embedding = Embedding(classes, size)
        self.lstm = LSTM(size, size, layers, batch_first=True, dropout=drop)
        self.head = Linear(size, classes)

    def forward(self, x: Value) -> Value:
        seen, _ = self.lstm(self.embedding(x))
        return swap(self.head(seen), 1, 2)


@register(
    "char-lstm", paper=KARPATHY, input=STEPS, classes=SHAKESPEARE, params=1_086_017,
    domain="language",
)  # fmt: skip
def char_lstm(
    classes: int = SHAKESPEARE, width: float = 1.0, layers: int = 2, drop: float = 0.0
) -> CharLSTM:
    """Two layers of 256."""
    return CharLSTM(classes, scaled(256, width), layers, drop)


class CharConvLSTM(Module):
    """A convolution over the last characters, an LSTM over what it finds, and a linear layer."""

    def __init__(self, classes: int, embedded: int, size: int, window: int) -> None:
        super().__init__()
        self.embedding = Embedding(classes, embedded)
        self.conv = Conv1d(embedded, size, window)
        self.lstm = LSTM(size, size, batch_first=True)
        self.head = Linear(size, classes)
        self.window = window

    def forward(self, x: Value) -> Value:
        channels = swap(self.embedding(x), 1, 2)
        before = pad(channels, [(0, 0), (0, 0), (self.window - 1, 0)])  # never sees what comes
        seen, _ = self.lstm(swap(relu(self.conv(before)), 1, 2))
        return swap(self.head(seen), 1, 2)


@register(
    "char-cnn-lstm", paper=LIU, input=STEPS, classes=SHAKESPEARE, params=949_505,
    domain="language",
)  # fmt: skip
def char_cnn_lstm(classes: int = SHAKESPEARE, width: float = 1.0) -> CharConvLSTM:
    """Five characters wide, 320 channels, an LSTM of 320."""
    return CharConvLSTM(classes, scaled(64, width), scaled(320, width), window=5)


class Pooled(Module):
    """The largest of every three positions of [batch, channels, positions]."""

    def forward(self, x: Value) -> Value:
        n, c, length = x.shape
        y = max_pool2d(reshape(x, (n, c, 1, length)), (1, 3))
        return reshape(y, (n, c, y.shape[3]))


class CharCNN(Module):
    """Characters as one-hot columns, six convolutions, three linear layers.

    Input are positions in the alphabet; ``ALPHABET`` and above stand for none and give zeros.
    """

    def __init__(self, classes: int, width: float, length: int) -> None:
        super().__init__()
        size, hidden = scaled(256, width), scaled(1024, width)
        layers: list[Module] = []
        channels, left = ALPHABET, length
        for window, pooled in ((7, True), (7, True), (3, False), (3, False), (3, False), (3, True)):
            layers += [Conv1d(channels, size, window), ReLU()]
            channels, left = size, left - window + 1
            if pooled:
                layers.append(Pooled())
                left //= 3
        self.features = Sequential(*layers)
        self.classifier = Sequential(
            Flatten(), Linear(size * left, hidden), ReLU(), Dropout(),
            Linear(hidden, hidden), ReLU(), Dropout(),
            Linear(hidden, classes),
        )  # fmt: skip
        for part in self.modules():
            if isinstance(part, Conv1d | Linear):
                init.normal_(part.weight, 0.0, 0.05)

    def forward(self, x: Value) -> Value:
        columns = one_hot(x, ALPHABET, self.features[0].weight.dtype, axis=1)
        scores: Value = self.classifier(self.features(columns))
        return scores


@register(
    "char-cnn", paper=ZHANG, input=TensorType((LENGTH,), int32), classes=4, params=11_339_780,
    domain="language", task="classify",
)  # fmt: skip
def char_cnn(classes: int = 4, width: float = 1.0, length: int = LENGTH) -> CharCNN:
    """The small one, by default for the four classes of AG's news."""
    return CharCNN(classes, width, length)
