"""Fine-tuning: train on some classes, then only the last layers on others.

Frozen layers cost no gradient and no optimizer state: the plan shows it.
"""

from __future__ import annotations

import sys

import numpy as np

import pocketgrad as pg

quick = "--quick" in sys.argv
clothes = pg.data.embedded()
first = clothes.rows(np.flatnonzero(clothes.y < 5)[: 512 if quick else None])
others = clothes.rows(np.flatnonzero(clothes.y >= 5)[: 512 if quick else None])

net = pg.zoo.card("lenet5").build()
trainer = pg.Trainer(net, optimizer=pg.optim.SGD(0.03, momentum=0.9))
trainer.fit(first, epochs=1 if quick else 4)
before = trainer.plan(64, others)

print("frozen:", ", ".join(trainer.freeze("features.*")))
after = trainer.plan(64, others)
print(f"{before.launch_count} launches become {after.launch_count},")
print(f"{before.flops:,} operations become {after.flops:,},")
print(f"{before.peak_nbytes:,} bytes become {after.peak_nbytes:,}")

trainer.lr = 0.01
trainer.fit(others, epochs=1 if quick else 4)
