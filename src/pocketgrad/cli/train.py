"""`pocketgrad train`: a model by name on a data set by name or path, results at the end."""

from __future__ import annotations

import argparse
import inspect
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pocketgrad.base.errors import SettingError, ShapeError, UnknownNameError
from pocketgrad.base.units import duration, si
from pocketgrad.cli.output import Table, add_json, emit

if TYPE_CHECKING:
    from pocketgrad.data.api import Dataset
    from pocketgrad.nn.module import Module
    from pocketgrad.nn.optim import Optimizer
    from pocketgrad.nn.schedule import Schedule
    from pocketgrad.train.trainer import Trainer

NAME = "train"
HELP = "train a model on a data set, measure it on the test part, save it"
EXAMPLE = "pocketgrad train --model lenet5 --data embedded --epochs 10 --checkpoint run --resume"

LEARNING_RATES = {"adam": 1e-3, "adamw": 1e-3, "rmsprop": 1e-3, "sgd": 0.03}
MOMENTUM = 0.9  # of sgd
SCHEDULES = ("constant", "cosine")
HELD_OUT = 10  # where a data set has no test part, one sample in so many is kept for it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    add = parser.add_argument
    add("--model", default="lenet5", metavar="NAME", help="one of `pocketgrad models`")
    add("--data", default="embedded", metavar="NAME|PATH",
        help="a data set by name (embedded, fashion_mnist, mnist, cifar10, synthetic), or a file "
        "or folder: IDX, CIFAR-10, images by class, .npz")  # fmt: skip
    add("--epochs", type=int, default=10, metavar="N", help="times through the data")
    add("--batch", type=int, default=64, metavar="B", help="samples in a step")
    add("--device", default="auto", metavar="D",
        help="auto, cpu, gpu, pocl, intel, reference, or one of `pocketgrad devices`")  # fmt: skip
    add("--seed", type=int, default=0, metavar="S", help="of initial weights, order and dropout")
    add("--optimizer", default="sgd", metavar="NAME",
        help="sgd (with momentum 0.9), adam, adamw or rmsprop")  # fmt: skip
    add("--lr", type=float, metavar="R",
        help="learning rate (default: 0.03 for sgd, 0.001 for the others)")  # fmt: skip
    add("--schedule", default="cosine", metavar="NAME",
        help="constant, or cosine: down to 0 over all epochs")  # fmt: skip
    add("--numerics", default="fast", metavar="NAME",
        help="fast, or strict: no kernels that round more than plain sums do")  # fmt: skip
    add("--checkpoint", metavar="DIR", help="save training there, to go on after any interruption")
    add("--checkpoint-every", type=float, default=30.0, metavar="SECONDS",
        help="how often within an epoch")  # fmt: skip
    add("--resume", action="store_true",
        help="go on from the newest checkpoint in DIR; begin where there is none")  # fmt: skip
    add("--save", metavar="FILE", help="write the weights as safetensors")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Train, measure, save, report."""
    _check(args)
    from pocketgrad import data
    from pocketgrad.train.trainer import Trainer

    how = optimizer(args.optimizer, args.lr)
    dataset = with_test_part(data.load(args.data))
    steps = len(dataset.loader(args.batch)) * args.epochs
    trainer = Trainer(
        model_for(args.model, dataset),
        "cross_entropy" if dataset.classes else "mse",
        how,
        args.device,
        schedule=schedule(args.schedule, steps),
        seed=args.seed,
        numerics=args.numerics,
    )
    if args.resume:
        _resume(trainer, Path(args.checkpoint))
    found = train(trainer, dataset, args)
    if args.save:
        found["saved"] = str(trainer.save(args.save))
    emit(args.json, found, report(found))
    return 0


def train(trainer: Trainer, dataset: Dataset, args: argparse.Namespace) -> dict[str, Any]:
    """Fit and evaluate; the results."""
    try:
        summary = trainer.plan(args.batch, dataset)
    except ShapeError as error:
        raise ShapeError(
            f"model '{args.model}' does not take the samples of data set '{dataset.name}' "
            f"({dataset.x.dtype} {list(dataset.sample_shape)}): {error}"
        ) from None
    begun = time.perf_counter()
    history = trainer.fit(
        dataset,
        args.epochs,
        args.batch,
        checkpoint=args.checkpoint,
        checkpoint_every_s=args.checkpoint_every,
    )
    train_s = time.perf_counter() - begun
    test = trainer.evaluate(dataset.test)
    progress, last = trainer.progress, history[-1] if history else None
    return {
        "model": args.model,
        "data": dataset.name,
        "device": str(trainer.place),
        "why": trainer.place.why,
        "epochs": len(history),
        "batch": args.batch,
        "seed": args.seed,
        "optimizer": args.optimizer,
        "lr": trainer.optimizer.lr,
        "schedule": args.schedule,
        "train_loss": last.loss if last else None,
        "train_accuracy": last.accuracy if last else None,
        "test_loss": test.loss,
        "test_accuracy": test.accuracy,
        "samples_per_s": median([e.samples_per_s for e in history]) if history else None,
        "train_s": train_s,
        "steps": progress.batches,
        "launches": summary.launch_count,
        "flops_per_step": summary.flops,
        "bytes_per_step": round(progress.moved / progress.batches) if progress.batches else None,
        "peak_bytes": trainer.session.allocated_nbytes,
    }


def report(found: dict[str, Any]) -> list[Table | str]:
    """The results for people."""
    rows = [
        ("device", f"{found['device']}: {found['why']}"),
        ("test accuracy", _number(found["test_accuracy"], ".4f")),
        ("test loss", _number(found["test_loss"], ".4f")),
        ("speed", f"{_number(found['samples_per_s'], ',.0f')} samples/s"),
        ("training time", duration(found["train_s"])),
        ("peak memory", f"{si(found['peak_bytes'], 'B')} on the device"),
        ("moved per step", f"{si(found['bytes_per_step'] or 0, 'B')} between host and device"),
        ("launches per step", f"{found['launches']}, {si(found['flops_per_step'], 'flop')}"),
    ]
    if "saved" in found:
        rows.append(("saved", found["saved"]))
    title = f"{found['model']} on {found['data']}, {found['epochs']} epochs of {found['batch']}"
    return [Table(title, ("result", "value"), rows)]


def with_test_part(dataset: Dataset) -> Dataset:
    """The data set; where it has no test part, with one kept back."""
    if dataset.held_out is not None:
        return dataset
    n = len(dataset) // HELD_OUT
    _note(f"data set '{dataset.name}' has no test part: {n} of its samples are kept back")
    return dataset.hold_out(max(1, n))


def model_for(name: str, dataset: Dataset) -> Module:
    """The model with as many classes and channels as the data has."""
    from pocketgrad import zoo

    card = zoo.card(name)
    fitting = {"classes": len(dataset.classes) or int(dataset.y[0].size)}
    if len(dataset.sample_shape) == 3:
        fitting["channels"], fitting["image"] = dataset.sample_shape[:2]
    takes = inspect.signature(card.build).parameters
    return card.build(**{option: n for option, n in fitting.items() if option in takes})


def optimizer(name: str, lr: float | None) -> Optimizer:
    """The optimizer of that name."""
    from pocketgrad.nn.optim import ALL, SGD

    if name not in ALL:
        raise UnknownNameError("optimizer", name, ALL)
    rate = LEARNING_RATES[name] if lr is None else lr
    return SGD(rate, momentum=MOMENTUM) if name == "sgd" else ALL[name](rate)


def schedule(name: str, steps: int) -> Schedule:
    """The schedule of that name over so many steps."""
    from pocketgrad.nn.schedule import ConstantLR, CosineLR

    if name not in SCHEDULES:
        raise UnknownNameError("schedule", name, SCHEDULES)
    return CosineLR(steps) if name == "cosine" and steps else ConstantLR()


def _check(args: argparse.Namespace) -> None:
    """What can be refused before anything is loaded."""
    if args.resume and not args.checkpoint:
        raise SettingError("--resume needs --checkpoint DIR, the folder to go on from")
    if args.epochs < 1:
        raise SettingError(f"--epochs {args.epochs}: choose 1 or more")
    if args.batch < 1:
        raise SettingError(f"--batch {args.batch}: choose 1 or more")
    if not args.checkpoint_every >= 0:
        raise SettingError(f"--checkpoint-every {args.checkpoint_every}: choose 0 or more seconds")


def _resume(trainer: Trainer, folder: Path) -> None:
    from pocketgrad.engine.checkpoint import files

    if not files(folder):
        _note(f"there is no checkpoint in '{folder}' yet: training begins")
        return
    path = trainer.resume(folder)
    _note(f"resumed '{path}' after {trainer.progress.batches} batches")


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _number(value: float | None, form: str) -> str:
    return "not available" if value is None else format(value, form)
