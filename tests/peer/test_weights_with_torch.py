"""Files of weights go to PyTorch and back: same names, same layouts, same outputs."""

from __future__ import annotations

import numpy as np
import pytest

from pocketgrad import nn, optim
from pocketgrad.train import Trainer

pytestmark = pytest.mark.peer("torch")
TOLERANCE = 1e-5  # outputs near 1, a few hundred products each


def test_weights_go_to_pytorch_and_back(tmp_path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    def parts(of):
        return [of.Conv2d(2, 4, 3), of.BatchNorm2d(4), of.ReLU(), of.Flatten(), of.Linear(144, 5)]

    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 2, 8, 8)).astype(np.float32)
    y = (np.arange(16) % 5).astype(np.int32)
    ours = Trainer(nn.Sequential(*parts(nn)), optimizer=optim.SGD(0.1), device="reference")
    for _ in range(3):
        ours.step(x, y)
    theirs = torch.nn.Sequential(*parts(torch.nn)).eval()
    theirs.load_state_dict(load_file(ours.save(tmp_path / "ours.safetensors")))
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x)).numpy()
    ours.batch = 16
    np.testing.assert_allclose(ours.predict(x), expected, rtol=TOLERANCE, atol=TOLERANCE)

    save_file(theirs.state_dict(), tmp_path / "theirs.safetensors")
    again = Trainer(nn.Sequential(*parts(nn)), device="reference", seed=1)
    again.load(tmp_path / "theirs.safetensors")
    again.batch = 16
    np.testing.assert_array_equal(again.predict(x), ours.predict(x))
