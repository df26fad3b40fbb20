"""The models of the zoo that are chains, and the recurrent ones, a second time in plain PyTorch.

At the widths of tests/zoo/small.py, with every size written out; ``torch_models`` has the others.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from typing import Any

from torch import nn
from torch.nn import functional as F


def conv(inp, oup, kernel=3, stride=1, **more):
    return nn.Conv2d(inp, oup, kernel, stride, kernel // 2, **more)


def lenet5(classes):
    parts: OrderedDict[str, Any] = OrderedDict(
        features=nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        ),
        classifier=nn.Sequential(
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, classes),
        ),
    )  # fmt: skip
    return nn.Sequential(parts)


def mlp(*sizes):
    layers: list[Any] = [nn.Flatten()]
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def vgg(*depths, classes):
    """At a sixteenth of the width, for images of 32×32; the head is 32 wide."""
    layers: list[Any] = []
    channels = 3
    for depth, width in zip(depths, (4, 8, 16, 32, 32), strict=True):
        for _ in range(depth):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        layers.append(nn.MaxPool2d(2))
    no = nn.Identity
    head = nn.Sequential(
        nn.Linear(32, 32), nn.ReLU(), no(), nn.Linear(32, 32), nn.ReLU(), no(),
        nn.Linear(32, classes),
    )  # fmt: skip
    parts: OrderedDict[str, Any] = OrderedDict(features=nn.Sequential(*layers), flat=nn.Flatten())
    parts["classifier"] = head
    return nn.Sequential(parts)


def alexnet(classes):
    """At a thirty-second of the width, for images of 32×32."""
    parts: OrderedDict[str, Any] = OrderedDict(
        features=nn.Sequential(
            conv(3, 2, 5), nn.ReLU(), nn.MaxPool2d(3, 2),
            conv(2, 6, 5), nn.ReLU(), nn.MaxPool2d(3, 2),
            conv(6, 12), nn.ReLU(), conv(12, 8), nn.ReLU(), conv(8, 8), nn.ReLU(),
            nn.MaxPool2d(3, 2),
        ),
        flat=nn.Flatten(),
        classifier=nn.Sequential(
            nn.Identity(), nn.Linear(72, 128), nn.ReLU(),
            nn.Identity(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, classes),
        ),
    )  # fmt: skip
    return nn.Sequential(parts)


def mentee(classes):
    layers: list[Any] = []
    for a, b in ((3, 4), (4, 8), (8, 16), (16, 32), (32, 32)):
        layers += [conv(a, b), nn.ReLU(), nn.AvgPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(256, classes))


def normed(inp, oup, kernel=3, stride=1, groups=1):
    layer = conv(inp, oup, kernel, stride, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(oup), nn.ReLU())


def reduced_mobilenet(classes):
    """At a quarter of the width."""
    layers = [normed(3, 8)]
    for a, b, stride in ((8, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)):
        layers += [normed(a, a, 3, stride, a), normed(a, b, 1)]
    return nn.Sequential(*layers, nn.AvgPool2d(7), nn.Flatten(), nn.Linear(64, classes))


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def reduced_resnet(classes):
    """At a sixteenth of the width."""
    return nn.Sequential(
        normed(3, 1), normed(1, 10),
        normed(10, 20, stride=2), Residual(normed(20, 20)),
        normed(20, 40, stride=2), Residual(normed(40, 40)),
        nn.AvgPool2d(8), nn.Flatten(), nn.Linear(40, classes),
    )  # fmt: skip


def dqn(classes):
    return nn.Sequential(
        nn.Conv2d(4, 4, 8, 4), nn.ReLU(), nn.Conv2d(4, 8, 4, 2), nn.ReLU(),
        nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(8 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, classes),
    )  # fmt: skip


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
            nn.Conv2d(ndf, 2 * ndf, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * ndf),
            nn.LeakyReLU(0.2),
            nn.Conv2d(2 * ndf, 4 * ndf, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * ndf),
            nn.LeakyReLU(0.2),
            nn.Conv2d(4 * ndf, 1, 4, 1, 0, bias=False),
        )  # fmt: skip

    def forward(self, x):
        return self.main(x).flatten(1)


class Separable(nn.Module):
    def __init__(self, inp, oup):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, inp, 3, padding=1, groups=inp, bias=False)
        self.pointwise = nn.Conv2d(inp, oup, 1, bias=False)

    def forward(self, x):
        return self.pointwise(self.conv1(x))


class XceptionBlock(nn.Module):
    def __init__(self, inp, middle, oup, repeats, stride=1, relu_first=True):
        super().__init__()
        rep: list[Any] = []
        for i in range(repeats):
            a = inp if i == 0 else middle
            b = oup if i == repeats - 1 else middle
            rep += [nn.ReLU(), Separable(a, b), nn.BatchNorm2d(b)]
        rep = rep if relu_first else rep[1:]
        self.rep = nn.Sequential(*rep, *([nn.MaxPool2d(3, 2, 1)] if stride == 2 else []))
        self.projects = stride == 2 or inp != oup
        if self.projects:
            self.skip = nn.Conv2d(inp, oup, 1, stride, bias=False)
            self.skipbn = nn.BatchNorm2d(oup)

    def forward(self, x):
        return self.rep(x) + (self.skipbn(self.skip(x)) if self.projects else x)


class Xception(nn.Module):
    """At a sixteenth of the width (728 becomes 46), for images of 32×32."""

    def __init__(self, classes):
        super().__init__()
        self.conv1, self.bn1 = conv(3, 2, bias=False), nn.BatchNorm2d(2)
        self.conv2, self.bn2 = conv(2, 4, bias=False), nn.BatchNorm2d(4)
        self.block1 = XceptionBlock(4, 8, 8, 2, 1, relu_first=False)
        self.block2 = XceptionBlock(8, 16, 16, 2, 2)
        self.block3 = XceptionBlock(16, 46, 46, 2, 2)
        for i in range(4, 12):
            self.add_module(f"block{i}", XceptionBlock(46, 46, 46, 3))
        self.block12 = XceptionBlock(46, 46, 64, 2, 2)
        self.conv3, self.bn3 = Separable(64, 96), nn.BatchNorm2d(96)
        self.conv4, self.bn4 = Separable(96, 128), nn.BatchNorm2d(128)
        self.fc = nn.Linear(128, classes)

    def forward(self, x):
        x = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        for i in range(1, 13):
            x = self.get_submodule(f"block{i}")(x)
        x = F.relu(self.bn4(self.conv4(F.relu(self.bn3(self.conv3(x))))))
        return self.fc(x.mean((2, 3)))


class CharLSTM(nn.Module):
    def __init__(self, classes, size):
        super().__init__()
        self.embedding = nn.Embedding(classes, size)
        self.lstm = nn.LSTM(size, size, 2, batch_first=True)
        self.head = nn.Linear(size, classes)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0]).transpose(1, 2)


class CharConvLSTM(nn.Module):
    def __init__(self, classes, embedded, size):
        super().__init__()
        self.embedding = nn.Embedding(classes, embedded)
        self.conv = nn.Conv1d(embedded, size, 5)
        self.lstm = nn.LSTM(size, size, 1, batch_first=True)
        self.head = nn.Linear(size, classes)

    def forward(self, x):
        x = F.pad(self.embedding(x).transpose(1, 2), (4, 0))
        seen, _ = self.lstm(self.conv(x).relu().transpose(1, 2))
        return self.head(seen).transpose(1, 2)


class CharCNN(nn.Module):
    """At a thirty-second of the width, for texts of 200 characters."""

    def __init__(self, classes):
        super().__init__()
        layers: list[Any] = []
        for i, (kernel, pooled) in enumerate(((7, 1), (7, 1), (3, 0), (3, 0), (3, 0), (3, 1))):
            layers += [nn.Conv1d(8 if i else 70, 8, kernel), nn.ReLU()]
            layers += [nn.MaxPool1d(3)] * pooled
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(24, 32), nn.ReLU(), nn.Identity(),
            nn.Linear(32, 32), nn.ReLU(), nn.Identity(), nn.Linear(32, classes),
        )  # fmt: skip

    def forward(self, x):
        columns = F.one_hot(x.long(), 70).transpose(1, 2).to(next(self.parameters()).dtype)
        return self.classifier(self.features(columns))
