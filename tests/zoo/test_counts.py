"""Parameters by hand, arithmetic and activations of one sample as stored, and how they are read.

Where torchvision or a paper has the same structure the numbers are theirs; the others are worked
out here, so that no card was copied from its model.
"""

from __future__ import annotations

import pytest

from pocketgrad.base.dtypes import float32
from pocketgrad.ir.core import TensorType
from pocketgrad.nn.activation import ReLU
from pocketgrad.nn.containers import Sequential
from pocketgrad.nn.conv import Conv2d
from pocketgrad.nn.layers import Flatten, Linear
from pocketgrad.nn.norm import BatchNorm2d
from pocketgrad.nn.pool import MaxPool2d
from pocketgrad.zoo import MODELS, card
from pocketgrad.zoo.summary import traced


def dense(growth: int, layers: int, channels: int = 16, classes: int = 10) -> int:
    """A plain DenseNet: a layer on c channels has 2c in its norm and 9·growth·c in its 3×3."""
    total = 27 * channels
    for block in range(3):
        for _ in range(layers):
            total += 2 * channels + 9 * growth * channels
            channels += growth
        total += 2 * channels  # the norm of the transition, or the last one
        total += channels**2 if block < 2 else 0
    return total + (channels + 1) * classes


def lstm(size: int, inputs: int) -> int:
    """Four gates, two matrices, two biases."""
    return 4 * size * (inputs + size) + 8 * size


def transformer(size: int, layers: int) -> int:
    """Tables and norm; per layer four square matrices, two of 4:1, two norms; two scores."""
    tables = (30522 + 512 + 2) * size + 2 * size
    attention, feed = 4 * (size * size + size), 8 * size * size + 5 * size
    return tables + layers * (attention + feed + 4 * size) + 2 * size + 2


BY_HAND = {
    # Five 3×3 convolutions with bias end at 512; 512·4096, 4096², 4096·10 with bias.
    "mentee": (1728 + 73_728 + 294_912 + 1_179_648 + 2_359_296 + 1472)
    + (2_101_248 + 16_781_312 + 40_970),
    # 131,264 convolution weights; norms of 1,472 channels; 256·10 + 10.
    "reduced-mobilenet": 131_264 + 2 * 1472 + 2570,
    # 6,935,472 convolution weights; norms of 2,096 channels; 640·10 + 10.
    "reduced-resnet": 6_935_472 + 2 * 2096 + 6410,
    "densenet40": dense(12, 12),
    "densenet100": dense(12, 32),
    # Embedding and head of 65 × 256, two layers.
    "char-lstm": 65 * 256 + 2 * lstm(256, 256) + 257 * 65,
    # Embedding of 64, five characters wide to 320, one layer, head.
    "char-cnn-lstm": 65 * 64 + 64 * 5 * 320 + 320 + lstm(320, 320) + 321 * 65,
    # 70 → 256 (7), 256 (7), four of 3; 34 positions are left of 1014.
    "char-cnn": (70 * 7 + 256 * 7 + 4 * 256 * 3 + 6) * 256
    + (256 * 34 + 1) * 1024 + 1025 * 1024 + 1025 * 4,
    # 100·256, 256·128, 128·64, 64·3 windows of 4×4; norms of 256 + 128 + 64 channels.
    "dcgan-generator": 16 * (100 * 256 + 256 * 128 + 128 * 64 + 64 * 3) + 2 * 448,
    "dcgan-discriminator": 16 * (3 * 64 + 64 * 128 + 128 * 256 + 256) + 2 * 384,
    # 8×8, 4×4, 3×3; 64·7·7 values; six actions.
    "dqn": (4 * 64 + 1) * 32 + (32 * 16 + 1) * 64 + (64 * 9 + 1) * 64
    + (3136 + 1) * 512 + 513 * 6,
    "dqn-vector": 5 * 128 + 129 * 128 + 129 * 2,
    # Two tables, two stacks of two layers, score, mix, head.
    "seq2seq": (17191 + 2 * 7709) * 512 + 4 * lstm(512, 512) + 3 * 512 * 512,
    "bert-base": transformer(768, 12),
    "bert-tiny": transformer(128, 2),
    "densenet100-bc": 769_162,  # the paper's 0.8M; DenseNet-BC of several implementations
    "xception": 22_855_952,  # the paper's table 3
    "fc-d8-w512": 3072 * 512 + 7 * 512**2,
    "conv-d4-w128": 27 * 128 + 3 * 9 * 128**2,
    "separable-d4-w512": (27 + 3 * 512) + 3 * (9 * 512 + 512**2),
    # torchvision's
    "alexnet": 61_100_840,
    "googlenet": 6_624_904,
    "mobilenet-v2": 3_504_872,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "squeezenet-1.0": 1_248_424,
    "squeezenet-1.1": 1_235_496,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_parameters_are_those_counted_by_hand(name):
    assert card(name).params == BY_HAND[name]


@pytest.mark.golden
def test_counts_of_all_models_are_the_stored_ones(golden):
    head = ("model", "parameters", "multiply-adds", "flops", "activation bytes", "convolutions")
    lines = [f"{head[0]:<22}" + "".join(f"{h:>17}" for h in head[1:])]
    for name in MODELS:
        found = card(name)
        t = traced(found.build(), found.inputs)
        counts = (found.params, t.multiply_adds, t.flops, t.activation_nbytes, t.convolutions)
        lines.append(f"{name:<22}" + "".join(f"{n:>17,}" for n in counts))
    golden("zoo/counts.txt", "\n".join(lines) + "\n")


def net() -> Sequential:
    return Sequential(
        Conv2d(3, 4, 3, padding=1, bias=False), BatchNorm2d(4), ReLU(), MaxPool2d(2),
        Flatten(), Linear(64, 5),
    )  # fmt: skip


def test_activations_are_what_products_and_pools_read_and_write():
    found = traced(net(), [TensorType((3, 8, 8))])
    convolved = normalised = 4 * 64 * 4
    pooled_and_where = 4 * 16 * (4 + 4)
    scores = 5 * 4
    assert found.activation_nbytes == convolved + normalised + pooled_and_where + scores
    assert found.multiply_adds == 64 * 4 * 27 + 64 * 5
    assert found.flops > 2 * found.multiply_adds
    assert found.convolutions == 1


def test_activations_grow_with_the_batch_and_parameters_do_not():
    one, four = (traced(net(), [TensorType((3, 8, 8))], batch=n) for n in (1, 4))
    assert four.activation_nbytes == 4 * one.activation_nbytes
    assert sum(layer.params for layer in four.layers()) == net().parameter_count()


def test_a_model_is_described_layer_by_layer():
    found = traced(net(), [TensorType((3, 8, 8))]).layers()
    assert [(row.name, row.kind, row.output.shape, row.params) for row in found] == [
        ("0", "Conv2d", (1, 4, 8, 8), 108),
        ("1", "BatchNorm2d", (1, 4, 8, 8), 8),
        ("2", "ReLU", (1, 4, 8, 8), 0),
        ("3", "MaxPool2d", (1, 4, 4, 4), 0),
        ("4", "Flatten", (1, 64), 0),
        ("5", "Linear", (1, 5), 325),
    ]
    assert found[0].output.dtype is float32
    assert found[0].flops == 2 * 64 * 4 * 27


@pytest.mark.parametrize("name", ["resnet50", "bert-tiny", "seq2seq", "googlenet"])
def test_the_layers_of_a_model_add_up(name):
    found = card(name)
    whole = traced(found.build(), found.inputs)
    rows = whole.layers()
    assert sum(row.params for row in rows) == found.params
    assert sum(row.flops for row in rows) == whole.flops
