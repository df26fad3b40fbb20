"""Models of the zoo a second time, in plain PyTorch, with every size written out.

Names are torchvision's and Hugging Face's, as ours.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    def __init__(self, inplanes, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, planes * 4, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(planes * 4)
        if stride > 1 or inplanes != planes * 4:
            shortcut = nn.Conv2d(inplanes, planes * 4, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(planes * 4))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet(nn.Module):
    """With the 3×3 stem of small images."""

    def __init__(self, depths, base, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, base, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(base)

        def stage(inplanes, planes, blocks, stride):
            first = Bottleneck(inplanes, planes, stride)
            return nn.Sequential(
                first, *(Bottleneck(planes * 4, planes, 1) for _ in range(blocks - 1))
            )

        self.layer1 = stage(base, base, depths[0], 1)
        self.layer2 = stage(base * 4, base * 2, depths[1], 2)
        self.layer3 = stage(base * 8, base * 4, depths[2], 2)
        self.layer4 = stage(base * 16, base * 8, depths[3], 2)
        self.fc = nn.Linear(base * 32, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def conv_bn_relu6(inp, oup, kernel, stride=1, groups=1):
    conv = nn.Conv2d(inp, oup, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(oup), nn.ReLU6())


class InvertedResidual(nn.Module):
    def __init__(self, inp, oup, stride, t):
        super().__init__()
        hidden = inp * t
        self.conv = nn.Sequential(
            *([conv_bn_relu6(inp, hidden, 1)] if t > 1 else []),
            conv_bn_relu6(hidden, hidden, 3, stride, hidden),
            nn.Conv2d(hidden, oup, 1, bias=False),
            nn.BatchNorm2d(oup),
        )
        self.residual = stride == 1 and inp == oup

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """At a quarter of the width, for images of 32×32."""

    def __init__(self, classes):
        super().__init__()
        widths = [8, 8, 8, 16, 24, 40, 80]  # 16, 24, 32, 64, 96, 160, 320 over 4, to eights
        layers = [conv_bn_relu6(3, 8, 3)]
        channels = 8
        for c, n, s, t in zip(
            widths, (1, 2, 3, 4, 3, 3, 1), (1, 1, 2, 2, 1, 2, 1), (1, *[6] * 6), strict=True
        ):
            for i in range(n):
                layers.append(InvertedResidual(channels, c, s if i == 0 else 1, t))
                channels = c
        self.features = nn.Sequential(*layers, conv_bn_relu6(80, 1280, 1))
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(1280, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


class Fire(nn.Module):
    def __init__(self, inp, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inp, squeeze, 1)
        self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = self.squeeze(x).relu()
        return torch.cat([self.expand1x1(x).relu(), self.expand3x3(x).relu()], 1)


class SqueezeNet(nn.Module):
    """At an eighth of the width, for images of 32×32."""

    def __init__(self, version, classes):
        super().__init__()

        def pool():
            return nn.MaxPool2d(3, 2, ceil_mode=True)

        early = version == "1.1"
        self.features = nn.Sequential(
            *((nn.Conv2d(3, 8, 3, 1, 1),) if early else (nn.Conv2d(3, 12, 7, 1, 3),)),
            nn.ReLU(), pool(),
            Fire(8 if early else 12, 2, 8), Fire(16, 2, 8), *([pool()] if early else []),
            Fire(16, 4, 16), *([] if early else [pool()]),
            Fire(32, 4, 16), *([pool()] if early else []),
            Fire(32, 6, 24), Fire(48, 6, 24), Fire(48, 8, 32), *([] if early else [pool()]),
            Fire(64, 8, 32),
        )  # fmt: skip
        self.classifier = nn.Sequential(nn.Identity(), nn.Conv2d(64, classes, 1), nn.ReLU())

    def forward(self, x):
        return self.classifier(self.features(x)).mean((2, 3))


class BasicConv(nn.Module):
    def __init__(self, inp, oup, kernel):
        super().__init__()
        self.conv = nn.Conv2d(inp, oup, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(oup, eps=1e-3)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Inception(nn.Module):
    def __init__(self, inp, a, b1, b2, c1, c2, d):
        super().__init__()
        self.branch1 = BasicConv(inp, a, 1)
        self.branch2 = nn.Sequential(BasicConv(inp, b1, 1), BasicConv(b1, b2, 3))
        self.branch3 = nn.Sequential(BasicConv(inp, c1, 1), BasicConv(c1, c2, 3))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), BasicConv(inp, d, 1))

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class Auxiliary(nn.Module):
    def __init__(self, inp, classes):
        super().__init__()
        self.conv = BasicConv(inp, 8, 1)
        self.fc1 = nn.Linear(128, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, x):
        x = self.conv(F.adaptive_avg_pool2d(x, 4)).flatten(1)
        return self.fc2(self.fc1(x).relu())


class GoogLeNet(nn.Module):
    """At a sixteenth of the width, for images of 32×32, with its auxiliary heads."""

    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = (
            BasicConv(3, 4, 3), BasicConv(4, 4, 1), BasicConv(4, 12, 3)
        )  # fmt: skip
        self.inception3a = Inception(12, 4, 6, 8, 1, 2, 2)
        self.inception3b = Inception(16, 8, 8, 12, 2, 6, 4)
        self.inception4a = Inception(30, 12, 6, 13, 1, 3, 4)
        self.inception4b = Inception(32, 10, 7, 14, 2, 4, 4)
        self.inception4c = Inception(32, 8, 8, 16, 2, 4, 4)
        self.inception4d = Inception(32, 7, 9, 18, 2, 4, 4)
        self.inception4e = Inception(33, 16, 10, 20, 2, 8, 8)
        self.inception5a = Inception(52, 16, 10, 20, 2, 8, 8)
        self.inception5b = Inception(52, 24, 12, 24, 3, 8, 8)
        self.aux1, self.aux2 = Auxiliary(32, classes), Auxiliary(33, classes)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.inception3b(self.inception3a(self.conv3(self.conv2(self.conv1(x)))))
        a = self.inception4a(F.max_pool2d(x, 3, 2, ceil_mode=True))
        d = self.inception4d(self.inception4c(self.inception4b(a)))
        x = F.max_pool2d(self.inception4e(d), 2, 2, ceil_mode=True)
        x = self.inception5b(self.inception5a(x))
        return self.fc(x.mean((2, 3))), self.aux2(d), self.aux1(a)


class DenseLayer(nn.Module):
    def __init__(self, inp, growth, bottleneck):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inp)
        if bottleneck:
            self.conv1 = nn.Conv2d(inp, 4 * growth, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(4 * growth)
            self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        else:
            self.conv1 = nn.Conv2d(inp, growth, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(self.norm1(x).relu())
        if hasattr(self, "conv2"):
            y = self.conv2(self.norm2(y).relu())
        return torch.cat([x, y], 1)


class DenseNet(nn.Module):
    def __init__(self, layers, growth, bc, classes):
        super().__init__()
        channels = 2 * growth if bc else 16
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(3, channels, 3, padding=1, bias=False))
        for b in (1, 2, 3):
            block = nn.Sequential()
            for i in range(1, layers + 1):
                block.add_module(f"denselayer{i}", DenseLayer(channels, growth, bc))
                channels += growth
            self.features.add_module(f"denseblock{b}", block)
            if b < 3:
                out = channels // 2 if bc else channels
                transition = nn.Sequential()
                transition.add_module("norm", nn.BatchNorm2d(channels))
                transition.add_module("relu", nn.ReLU())
                transition.add_module("conv", nn.Conv2d(channels, out, 1, bias=False))
                transition.add_module("pool", nn.AvgPool2d(2))
                self.features.add_module(f"transition{b}", transition)
                channels = out
        self.features.add_module("norm4", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x):
        return self.classifier(self.features(x).relu().mean((2, 3)))


class DCGANGenerator(nn.Module):
    def __init__(self, ngf, image=32):
        super().__init__()
        layers: list[Any] = [nn.ConvTranspose2d(100, ngf * 4, 4, 1, 0, bias=False)]
        for k in (4, 2):
            layers += [nn.BatchNorm2d(ngf * k), nn.ReLU()]
            layers.append(nn.ConvTranspose2d(ngf * k, ngf * k // 2, 4, 2, 1, bias=False))
        layers += [nn.BatchNorm2d(ngf), nn.ReLU()]
        layers += [nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False), nn.Tanh()]
        self.main = nn.Sequential(*layers)

    def forward(self, x):
        return self.main(x[:, :, None, None])


class Seq2Seq(nn.Module):
    def __init__(self, source, target, size):
        super().__init__()
        self.source_embedding = nn.Embedding(source, size, padding_idx=0)
        self.target_embedding = nn.Embedding(target, size, padding_idx=0)
        self.encoder = nn.LSTM(size, size, 2, batch_first=True)
        self.decoder = nn.LSTM(size, size, 2, batch_first=True)
        self.score = nn.Linear(size, size, bias=False)
        self.mix = nn.Linear(2 * size, size, bias=False)
        self.head = nn.Linear(size, target, bias=False)

    def forward(self, source, target):
        memory, state = self.encoder(self.source_embedding(source))
        seen, _ = self.decoder(self.target_embedding(target), state)
        scores = torch.einsum("nte,nse->nts", seen, self.score(memory))
        scores = scores.masked_fill((source == 0)[:, None], -torch.inf)
        context = scores.softmax(-1) @ memory
        return self.head(torch.tanh(self.mix(torch.cat([context, seen], 2)))).transpose(1, 2)


class BertLayer(nn.Module):
    """One layer under Hugging Face's names."""

    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.attention: Any = nn.ModuleDict(
            {
                "self": nn.ModuleDict(
                    {name: nn.Linear(size, size) for name in ("query", "key", "value")}
                ),
                "output": self._output(size, size),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, 4 * size)})
        self.output: Any = self._output(4 * size, size)

    @staticmethod
    def _output(inp, size):
        norm = nn.LayerNorm(size, 1e-12)
        return nn.ModuleDict({"dense": nn.Linear(inp, size), "LayerNorm": norm})

    def forward(self, x, allowed):
        split = [
            part(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in self.attention["self"].values()
        ]
        mixed = F.scaled_dot_product_attention(*split, attn_mask=allowed)
        y = self.attention["output"]["dense"](mixed.transpose(1, 2).flatten(2))
        x = self.attention["output"]["LayerNorm"](x + y)
        y = self.output["dense"](F.gelu(self.intermediate["dense"](x)))
        return self.output["LayerNorm"](x + y)


class Bert(nn.Module):
    def __init__(self, depth, size, heads, vocabulary):
        super().__init__()
        tables = {"word": vocabulary, "position": 512, "token_type": 2}
        embeddings = {f"{n}_embeddings": nn.Embedding(k, size) for n, k in tables.items()}
        embeddings["word_embeddings"].padding_idx = 0
        self.bert: Any = nn.ModuleDict(
            {
                "embeddings": nn.ModuleDict({**embeddings, "LayerNorm": nn.LayerNorm(size, 1e-12)}),
                "encoder": nn.ModuleDict(
                    {"layer": nn.ModuleList(BertLayer(size, heads) for _ in range(depth))}
                ),
            }
        )
        self.qa_outputs = nn.Linear(size, 2)

    def forward(self, tokens, segments, mask):
        tables = self.bert["embeddings"]
        x = tables["word_embeddings"](tokens) + tables["token_type_embeddings"](segments)
        x = x + tables["position_embeddings"](torch.arange(tokens.shape[1]))
        x = tables["LayerNorm"](x)
        for layer in self.bert["encoder"]["layer"]:
            x = layer(x, mask.bool()[:, None, None])
        return self.qa_outputs(x)
