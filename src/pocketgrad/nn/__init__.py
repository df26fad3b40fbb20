"""Layers, losses, optimisers and schedules, in PyTorch's vocabulary."""

from pocketgrad.nn import init, optim, schedule
from pocketgrad.nn.activation import (
    ELU,
    GELU,
    Hardsigmoid,
    Hardswish,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from pocketgrad.nn.attention import MultiheadAttention
from pocketgrad.nn.containers import ModuleList, Sequential
from pocketgrad.nn.conv import Conv1d, Conv2d, ConvTranspose2d
from pocketgrad.nn.dropout import Dropout
from pocketgrad.nn.layers import Embedding, Flatten, Identity, Linear
from pocketgrad.nn.loss import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
    SmoothL1Loss,
)
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import (
    BatchNorm1d,
    BatchNorm2d,
    GroupNorm,
    LayerNorm,
    LocalResponseNorm,
)
from pocketgrad.nn.parameter import Buffer, Parameter
from pocketgrad.nn.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from pocketgrad.nn.recurrent import GRU, LSTM
from pocketgrad.nn.tracing import Tracing, tracing
from pocketgrad.nn.upsample import Upsample

__all__ = [
    "ELU",
    "GELU",
    "GRU",
    "LSTM",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Hardsigmoid",
    "Hardswish",
    "HuberLoss",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softplus",
    "Tanh",
    "Tracing",
    "Upsample",
    "init",
    "optim",
    "schedule",
    "tracing",
]
