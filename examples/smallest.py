"""The smallest program: a network, a plan, two epochs, a file of weights.

``--quick`` takes a part of the data.
"""

from __future__ import annotations

import sys

import pocketgrad as pg

quick = "--quick" in sys.argv
data = pg.data.embedded()
if quick:
    data = data.subset(512)

net = pg.nn.Sequential(
    pg.nn.Conv2d(1, 16, 3),
    pg.nn.ReLU(),
    pg.nn.MaxPool2d(2),
    pg.nn.Flatten(),
    pg.nn.Linear(2704, 10),
)
trainer = pg.Trainer(net, loss="cross_entropy", optimizer=pg.optim.SGD(0.05, momentum=0.9))
print(trainer.plan(batch=64))  # launches, peak memory, arithmetic: before any step
trainer.fit(data, epochs=1 if quick else 2, validate=data.test)
print(trainer.evaluate(data.test))
trainer.save("net.safetensors")
