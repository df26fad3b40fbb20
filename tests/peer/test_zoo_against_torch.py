"""Models agree with the same ones in PyTorch: names, outputs, every gradient, running statistics.

At small width and 32×32, in float64; weights go over by name, so names are compared too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.describe import outcome
from tests.zoo.small import CLASSES, TOKENS, batch, small, without_dropout

from pocketgrad import zoo

torch = pytest.importorskip("torch")
from tests.peer import torch_chains as chains  # noqa: E402  # needs torch
from tests.peer import torch_models as theirs  # noqa: E402  # needs torch

pytestmark = pytest.mark.peer("torch")

MODELS: dict[str, Callable[[], Any]] = {
    "alexnet": lambda: chains.alexnet(CLASSES),
    "bert-base": lambda: theirs.Bert(12, 24, 12, TOKENS),
    "bert-tiny": lambda: theirs.Bert(2, 16, 2, TOKENS),
    "char-cnn": lambda: chains.CharCNN(CLASSES),
    "char-cnn-lstm": lambda: chains.CharConvLSTM(CLASSES, 4, 20),
    "char-lstm": lambda: chains.CharLSTM(CLASSES, 8),
    "dcgan-discriminator": lambda: chains.Discriminator(4),
    "dcgan-generator": lambda: theirs.DCGANGenerator(4),
    "densenet100": lambda: theirs.DenseNet(32, 2, False, CLASSES),
    "densenet100-bc": lambda: theirs.DenseNet(16, 2, True, CLASSES),
    "densenet40": lambda: theirs.DenseNet(12, 2, False, CLASSES),
    "dqn": lambda: chains.dqn(CLASSES),
    "googlenet": lambda: theirs.GoogLeNet(CLASSES),
    "lenet5": lambda: chains.lenet5(CLASSES),
    "mentee": lambda: chains.mentee(CLASSES),
    "mlp-784-256-128-16": lambda: chains.mlp(784, 256, 128, 16, CLASSES),
    "mobilenet-v2": lambda: theirs.MobileNetV2(CLASSES),
    "model1": lambda: chains.mlp(16, CLASSES),
    "model2": lambda: chains.mlp(16, 16, 16, CLASSES),
    "model3": lambda: chains.mlp(256, CLASSES),
    "model4": lambda: chains.mlp(784, 256, 128, CLASSES),
    "reduced-mobilenet": lambda: chains.reduced_mobilenet(CLASSES),
    "reduced-resnet": lambda: chains.reduced_resnet(CLASSES),
    "resnet101": lambda: theirs.ResNet((3, 4, 23, 3), 4, CLASSES),
    "resnet152": lambda: theirs.ResNet((3, 8, 36, 3), 4, CLASSES),
    "resnet50": lambda: theirs.ResNet((3, 4, 6, 3), 4, CLASSES),
    "seq2seq": lambda: theirs.Seq2Seq(TOKENS, CLASSES, 16),
    "squeezenet-1.0": lambda: theirs.SqueezeNet("1.0", CLASSES),
    "squeezenet-1.1": lambda: theirs.SqueezeNet("1.1", CLASSES),
    "vgg16": lambda: chains.vgg(2, 2, 3, 3, 3, classes=CLASSES),
    "vgg19": lambda: chains.vgg(2, 2, 4, 4, 4, classes=CLASSES),
    "xception": lambda: chains.Xception(CLASSES),
}
# Constants of formulas such as eps are float32 in ours.
CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-7}


def test_no_model_is_left_out():
    grids = {n for n in zoo.MODELS if zoo.card(n).domain == "study" and "-d" in n}
    assert set(MODELS) == set(zoo.MODELS) - grids - {"dqn-vector"}  # chains of tested layers


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n == "densenet100" else []) for n in MODELS],
)
def test_a_model_agrees_with_the_same_one_in_pytorch(name):
    net, peer = without_dropout(small(name)).initialise(3), MODELS[name]().double()
    arrays = {n: torch.from_numpy(a) for n, a in net.state_dict().items()}
    peer.load_state_dict({n: a.double() if a.is_floating_point() else a for n, a in arrays.items()})

    inputs = batch(name)
    got = outcome(net, *inputs)
    tensors = [torch.from_numpy(a) for a in inputs]
    tensors = [t.double().requires_grad_() if t.is_floating_point() else t for t in tensors]
    found = peer(*tensors)
    outputs = found if isinstance(found, tuple) else (found,)
    assert len(outputs) == len(got.outputs)
    for ours, output in zip(got.outputs, outputs, strict=True):
        np.testing.assert_allclose(ours, output.detach().numpy(), **CLOSE)

    pairs = zip(outputs, got.directions, strict=True)
    sum((output * torch.from_numpy(d)).sum() for output, d in pairs).backward()
    wanted = {n: p.grad.numpy() for n, p in peer.named_parameters()}
    wanted |= {f"input{i}": t.grad.numpy() for i, t in enumerate(tensors) if t.grad is not None}
    assert set(wanted) == set(got.gradients)
    for key, gradient in wanted.items():
        scale = max(1.0, float(np.abs(gradient).max()))
        np.testing.assert_allclose(
            got.gradients[key] / scale, gradient / scale, err_msg=key, **CLOSE
        )
    for key, buffer in peer.named_buffers():
        np.testing.assert_allclose(got.updates[key], buffer.numpy(), err_msg=key, **CLOSE)
