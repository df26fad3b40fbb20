"""`pocketgrad profile`: where the time, bytes and joules of a model's training step go."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pocketgrad.base.errors import SettingError
from pocketgrad.cli.output import add_json, emit

if TYPE_CHECKING:
    from pocketgrad.profile.profiler import Profiler
    from pocketgrad.trace.profile import Profile
    from pocketgrad.train.batches import Batch
    from pocketgrad.train.step import Inputs
    from pocketgrad.train.trainer import Trainer

NAME = "profile"
HELP = "measure where the time, bytes and joules of training go, operation by operation"
EXAMPLE = "pocketgrad profile --model lenet5 --batch 32 --steps 50 --out lenet-profile"

DISCARDED = 3
OVERHEAD_S = 20.0  # at most so long for measuring what profiling costs; two rounds in any case


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    add = parser.add_argument
    add("--model", default="lenet5", metavar="NAME", help="one of `pocketgrad models`")
    add("--batch", type=int, default=32, metavar="B", help="samples in a step")
    add("--steps", type=int, default=50, metavar="N",
        help=f"steps that count; {DISCARDED} before them are left out")  # fmt: skip
    add("--out", type=Path, metavar="DIR", help="folder for the report and all that was measured")
    add("--data", metavar="NAME|PATH",
        help="train on a data set, as `pocketgrad train` (default: a random batch; for models "
        "that do not tell images apart, that of their task)")  # fmt: skip
    add("--device", default="auto", metavar="D",
        help="auto, cpu, gpu, pocl, intel, reference, or one of `pocketgrad devices`")  # fmt: skip
    add("--device-tree", type=Path, metavar="DIR",
        help="play back the sensors of a device recorded by `pocketgrad record-tree`")  # fmt: skip
    add("--top", type=int, default=12, metavar="N", help="operations to show")
    add("--no-overhead", action="store_true",
        help="do not measure what profiling itself costs, which takes more steps")  # fmt: skip
    add("--seed", type=int, default=0, metavar="S", help="of weights and of the random batch")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, show, save; after Ctrl-C what was measured so far."""
    _check(args)
    from pocketgrad.profile import folder as folders
    from pocketgrad.profile import text

    if args.out is not None:
        folders.check(args.out)
    interrupted, profiler = measure(args)
    found = profiler.result
    parts, files = [text.summary(found, args.top)], []
    if args.out is not None:
        with stage("writing the report"):
            saved = profiler.save(args.out)
        files = [str(path) for path in saved.paths]
        parts += [f"written: {', '.join(files)}", *(str(absent) for absent in saved.absent)]
    emit(args.json, payload(found, args.top) | {"files": files, "interrupted": interrupted}, parts)
    if interrupted:
        raise KeyboardInterrupt(f"after {len(found.measured_steps)} measured steps")
    return 0


def measure(args: argparse.Namespace) -> tuple[bool, Profiler]:
    """Profile the steps; whether Ctrl-C ended it, and the profiler with what it has."""
    from pocketgrad.engine import ceilings
    from pocketgrad.profile.profiler import Profiler

    trainer, inputs, batches = subject(args)
    session = trainer.session
    with stage("building kernels"):
        session.executable("train", inputs)
        one = next(batches)
        session.train(inputs, one.x, one.y, one.weight)  # drivers compile at the first launch
        session.loss()
    profiler = Profiler(trainer, discard=DISCARDED, device_tree=args.device_tree)
    profiler.metadata |= {"model": args.model, "steps": args.steps, "seed": args.seed}
    profiler.metadata["command"] = f"pocketgrad {' '.join(sys.argv[1:])}"
    try:
        with stage("measuring what the device can do at best"):
            profiler.ceilings, profiler.absent = ceilings.measure(session.backend)
        with stage("measuring steps", args.steps + DISCARDED) as advance, profiler:
            for batch in profiler.loading(batches, args.steps + DISCARDED):
                session.train(inputs, batch.x, batch.y, batch.weight)
                advance()
            session.loss()
        if not args.no_overhead:
            with stage("measuring what profiling costs"):
                _overhead(profiler, session_step(trainer, inputs, one))
    except KeyboardInterrupt:
        if not profiler.measured:
            raise
        return True, profiler
    return False, profiler


def session_step(trainer: Trainer, inputs: Inputs, batch: Batch) -> Callable[[], None]:
    """One more step on the same batch."""
    session = trainer.session

    def step() -> None:
        session.train(inputs, batch.x, batch.y, batch.weight)

    return step


def _overhead(profiler: Profiler, step: Callable[[], None]) -> None:
    from pocketgrad.profile import overhead

    steps = profiler.steps
    typical = sum(s.duration_ns for s in steps) / len(steps) if steps else 1e6
    profiler.overhead = overhead.measure(profiler.trainer.session, step, typical, OVERHEAD_S)


def subject(args: argparse.Namespace) -> tuple[Trainer, Inputs, Iterator[Batch]]:
    """What to profile: the trainer, the types of its batches, and batches without end.

    A model that tells images apart needs no data set; the others train as `pocketgrad train` does.
    """
    from pocketgrad import tasks, zoo
    from pocketgrad.profile.batch import inputs_for, random_batch
    from pocketgrad.train.batches import feed_of, inputs_of
    from pocketgrad.train.trainer import Trainer

    card = zoo.card(args.model)
    task = tasks.task_of(card)
    how = task.optimizer(task.optimizer_name, None)
    if args.data is None and card.task == "classify" and len(card.inputs) == 1:
        trainer = Trainer(card.build(), "cross_entropy", how, args.device, seed=args.seed)
        inputs = inputs_for(trainer.spec, card.input, args.batch)
        return trainer, inputs, repeat(random_batch(trainer.spec, inputs, args.seed))
    source = task.load(args.data or task.usual, _note)
    net = task.model(card, source)
    trainer = Trainer(net, task.loss_for(source), how, args.device, seed=args.seed)
    task.prepare(trainer, source)
    feed = feed_of(source, args.batch, args.seed)
    trainer.stored = feed.stored
    first = next(iter(feed.epoch(0)))
    return trainer, inputs_of(first.x, first.y, feed.stored), _endless(feed)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _endless(feed: Any) -> Iterator[Batch]:  # a Feed of train.batches
    epoch = 0
    while True:
        yield from feed.epoch(epoch)
        epoch += 1


@contextmanager
def stage(name: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Say on standard error what goes on: a bar on a terminal, a line elsewhere."""
    if not sys.stderr.isatty():
        print(name, file=sys.stderr)
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, refresh_per_second=2) as shown:
        task = shown.add_task(name, total=total)
        yield lambda: shown.advance(task)


def payload(profile: Profile, top: int) -> dict[str, Any]:
    """The summary as JSON takes it; all of it is in profile.json."""
    from dataclasses import asdict

    from pocketgrad.trace import codec

    def rows(found: tuple[Any, ...]) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in codec.encode(row).items() if k != "step_ns"}
            | {"median_ns": row.median_ns}
            for row in found
        ]

    cost = profile.overhead
    return {
        "metadata": dict(profile.metadata),
        "steps": len(profile.measured_steps),
        "phases": rows(profile.phases),
        "layers": rows(profile.layers),
        "ops": rows(profile.ops[:top]),
        "metrics": [asdict(metric) for metric in profile.metrics],
        "ceilings": [asdict(ceiling) for ceiling in profile.ceilings],
        "energy": codec.encode(profile.energy),
        "overhead": {"of_one_core": cost.of_one_core, "slowdown": cost.slowdown},
        "absent": {a.name: a.reason for a in profile.absent},
        "warnings": list(profile.warnings),
    }


def _check(args: argparse.Namespace) -> None:
    """What can be refused before anything is loaded."""
    for name in ("batch", "steps", "top"):
        if getattr(args, name) < 1:
            raise SettingError(f"--{name} {getattr(args, name)}: choose 1 or more")
