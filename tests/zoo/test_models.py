"""Every model describes a legal graph that reaches all its parameters, at every size it offers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.describe import outcome
from tests.zoo.small import BATCH, CLASSES, NAMES, batch, small

from pocketgrad.base.errors import SettingError, ShapeError
from pocketgrad.ir.verify import verify
from pocketgrad.nn.module import Module
from pocketgrad.nn.norm import BatchNorm
from pocketgrad.ops.arithmetic import add
from pocketgrad.ops.reduce import sum_
from pocketgrad.passes.autodiff import gradients
from pocketgrad.zoo import MODELS, card
from pocketgrad.zoo.blocks import scaled
from pocketgrad.zoo.summary import Traced, traced

SIZED = [name for name in MODELS if "image" in card(name).options]
SLOW = {"densenet100", "densenet100-bc", "resnet101", "resnet152"}  # deep at any width


def unreached(found: Traced) -> list[str]:
    """Parameters on which the sum of all outputs does not depend; verifies the graph on the way."""
    names = [n for n, p in found.module.named_parameters() if p.trainable]
    with found.builder as builder:
        total = sum_(found.outputs[0])
        for output in found.outputs[1:]:
            total = add(total, sum_(output))
        cts = gradients(builder, total, [found.values[n] for n in names])
    verify(builder.graph([ct for ct in cts if ct is not None]), "differentiation")
    for name, ct in zip(names, cts, strict=True):
        assert ct is None or ct.type == found.values[name].type
    return [name for name, ct in zip(names, cts, strict=True) if ct is None]


@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_training_reaches_every_parameter(name):
    found = card(name)
    net = found.build()
    step = traced(net, found.inputs, batch=2, training=True)
    verify(step.graph)
    assert unreached(step) == []
    if found.classes:
        assert step.outputs[0].shape[:2] == (2, found.classes)
    norms = [n for n, part in net.named_modules() if isinstance(part, BatchNorm)]
    assert {n.rpartition(".")[0] for n in step.updates} == set(norms)


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("image", [32, 224])
def test_a_model_of_images_takes_small_and_large_ones(name, image):
    found = card(name)
    if name.startswith("dcgan") and image == 224:
        with pytest.raises(SettingError, match="not 224"):
            found.make(image=image)
        return
    options = {"classes": 10} if found.classes else {}
    net = found.make(image=image, width=0.25, **options)
    use = traced(net, found.sample(image), batch=2)
    verify(use.graph)
    assert use.outputs[0].shape == (2, 10 if found.classes else 1)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in NAMES]
)
def test_every_parameter_of_a_model_has_a_gradient(name):
    net = small(name)
    got = outcome(net, *batch(name))
    if card(name).classes:
        assert got.outputs[0].shape[:2] == (BATCH, CLASSES)
    assert all(np.isfinite(output).all() for output in got.outputs)
    for parameter, _ in net.named_parameters():
        assert got.gradients[parameter].any(), parameter


def test_auxiliary_heads_speak_in_training_only():
    googlenet = card("googlenet")
    assert googlenet.build(aux=True).parameter_count() == 13_004_888  # torchvision's
    net = googlenet.make(image=32, width=0.25, classes=5, aux=True)
    types = googlenet.sample(32)
    assert [v.shape for v in traced(net, types, 2, training=True).outputs] == [(2, 5)] * 3
    assert [v.shape for v in traced(net, types, 2).outputs] == [(2, 5)]


def test_a_dcgan_makes_images_of_several_sizes_and_judges_them():
    maker, judge = card("dcgan-generator"), card("dcgan-discriminator")
    for size in (32, 64):
        picture = traced(maker.make(size=size, width=0.25), maker.inputs, 2).outputs[0].type
        assert picture.shape == (2, 3, size, size)
        logit = traced(judge.make(image=size, width=0.25), judge.sample(size), 2)
        assert logit.outputs[0].shape == (2, 1)


def test_a_cell_of_the_grids_gets_a_head_when_classes_are_asked_for():
    for name, output in (("fc-d2-w64", (2, 64)), ("conv-d1-w64", (2, 64, 32, 32))):
        found = card(name)
        assert traced(found.build(), found.inputs, 2).outputs[0].shape == output
        headed = found.make(classes=10)
        assert traced(headed, found.inputs, 2).outputs[0].shape == (2, 10)
        assert headed.parameter_count() == found.params + 65 * 10


def test_decoding_a_token_at_a_time_gives_the_scores_of_teacher_forcing():
    net = small("seq2seq")
    source, target = batch("seq2seq")
    together = outcome(net, source, target, training=False).outputs[0]

    class Stepwise(Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, source, *tokens):
            memory, state = self.net.encode(source)
            scores = []
            for token in tokens:
                now, state = self.net.decode(token, memory, state)
                scores.append(now)
            return scores

    columns = [target[:, i : i + 1] for i in range(target.shape[1])]
    apart = outcome(Stepwise(), source, *columns, training=False).outputs
    np.testing.assert_allclose(np.concatenate(apart, axis=2), together, atol=1e-12)


def test_what_is_masked_does_not_change_the_answer():
    net = small("bert-tiny")
    tokens, segments, mask = batch("bert-tiny")
    first = outcome(net, tokens, segments, mask, training=False).outputs[0]
    other = np.where(mask == 1, tokens, 5).astype(np.int32)
    second = outcome(net, other, segments, mask, training=False).outputs[0]
    np.testing.assert_array_equal(first[:, :4], second[:, :4])


def test_what_comes_later_does_not_change_a_prediction():
    net = small("char-cnn-lstm")
    (seen,) = batch("char-cnn-lstm")
    first = outcome(net, seen, training=False).outputs[0]
    seen[:, 4] = (seen[:, 4] + 1) % CLASSES
    second = outcome(net, seen, training=False).outputs[0]
    np.testing.assert_array_equal(first[:, :, :4], second[:, :, :4])
    assert (first[:, :, 4] != second[:, :, 4]).any()


def test_a_width_that_is_not_positive_is_refused():
    with pytest.raises(SettingError, match="width is a factor"):
        card("resnet50").make(width=0.0)


def test_widths_are_rounded_to_their_multiple_but_never_by_a_tenth_down():
    assert [scaled(n, 1.0) for n in (12, 728)] == [12, 728]
    assert [scaled(n, 0.75, 8) for n in (16, 24, 32)] == [16, 24, 24]
    assert scaled(3, 0.01) == 1


def test_an_error_in_a_shape_names_the_layer():
    found = card("resnet50")
    with pytest.raises(ShapeError, match="conv1"):
        traced(found.build(), card("lenet5").inputs)
