"""`pocketgrad train`: a model by name on a data set by name or path, results at the end."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pocketgrad.base.errors import DtypeError, SettingError, ShapeError, UnknownNameError
from pocketgrad.base.units import duration, si
from pocketgrad.cli.output import Table, add_json, emit

if TYPE_CHECKING:
    from pocketgrad.nn.schedule import Schedule
    from pocketgrad.plan.summary import PlanSummary
    from pocketgrad.tasks import Task
    from pocketgrad.train.progress import Display
    from pocketgrad.train.trainer import Trainer

NAME = "train"
HELP = "train a model on a data set, measure it on the test part, save it"
EXAMPLE = "pocketgrad train --model lenet5 --data embedded --epochs 10 --checkpoint run --resume"

SCHEDULES = ("constant", "cosine")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    add = parser.add_argument
    add("--model", default="lenet5", metavar="NAME", help="one of `pocketgrad models`")
    add("--data", metavar="NAME|PATH",
        help="images (embedded, fashion_mnist, mnist, cifar10, synthetic), text (shakespeare, "
        "moby_dick), authors, reversal (sentence pairs), spans (questions), an environment "
        "(cartpole, grid, pong), or a file or folder: IDX, CIFAR-10, images by class, .npz, .txt, "
        ".csv, .tsv, .json (default: by the model's task)")  # fmt: skip
    add("--width", type=float, metavar="W", help="channels of the model, times this (default: 1)")
    add("--epochs", type=int, default=10, metavar="N", help="times through the data")
    add("--batch", type=int, default=64, metavar="B", help="samples in a step")
    add("--device", default="auto", metavar="D",
        help="auto, cpu, gpu, pocl, intel, reference, or one of `pocketgrad devices`")  # fmt: skip
    add("--seed", type=int, default=0, metavar="S", help="of initial weights, order and dropout")
    add("--optimizer", metavar="NAME",
        help="sgd (with momentum 0.9), adam, adamw or rmsprop (default: sgd for classes, "
        "otherwise adam)")  # fmt: skip
    add("--lr", type=float, metavar="R",
        help="learning rate (default: 0.03 for sgd, 0.001 for the others)")  # fmt: skip
    add("--schedule", metavar="NAME",
        help="constant, or cosine: down to 0 over all epochs (default: constant for models that "
        "act or generate, otherwise cosine)")  # fmt: skip
    add("--augment", metavar="WORDS",
        help="change images at random: flip, crop:PIXELS, colour:SHARE, with commas between"
    )  # fmt: skip
    add("--numerics", default="fast", metavar="NAME",
        help="fast, or strict: no kernels that round more than plain sums do")  # fmt: skip
    add("--checkpoint", metavar="DIR", help="save training there, to go on after any interruption")
    add("--checkpoint-every", type=float, default=30.0, metavar="SECONDS",
        help="how often within an epoch")  # fmt: skip
    add("--resume", action="store_true",
        help="go on from the newest checkpoint in DIR; begin where there is none")  # fmt: skip
    add("--weights", metavar="FILE", help="begin with these weights")
    add("--eval", action="store_true",
        help="do not train: measure what --weights or --resume give")  # fmt: skip
    add("--predict", metavar="FILE",
        help="what the model says of an image, or of each line of a file: a text, a sentence, or a "
        "question, a tab and a text")  # fmt: skip
    add("--picture", metavar="FILE", help="a sheet of generated pictures, as .png")
    add("--save", metavar="FILE", help="write the weights as safetensors")
    add(
        "--monitor",
        action="store_true",
        help="show cores, memory, power, temperature and clocks while training, twice a second",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Train, measure, save, report."""
    _check(args)
    from pocketgrad import tasks, zoo
    from pocketgrad.train.augment import Augment
    from pocketgrad.train.trainer import Trainer

    card = zoo.card(args.model)
    task = tasks.task_of(card)
    args.optimizer = args.optimizer or task.optimizer_name
    args.schedule = args.schedule or task.schedule
    how = task.optimizer(args.optimizer, args.lr)
    source = task.load(args.data or task.usual, _note)
    options = {} if args.width is None else {"width": args.width}
    trainer = Trainer(
        task.model(card, source, **options),
        task.loss_for(source),
        how,
        args.device,
        schedule=schedule(args.schedule, task.steps(source, args.batch) * args.epochs),
        seed=args.seed,
        numerics=args.numerics,
        augment=Augment.parse(args.augment) if args.augment else None,
    )
    task.prepare(trainer, source)
    _begin(trainer, args)
    found = train(trainer, task, source, args)
    if args.save:
        found["saved"] = str(trainer.save(args.save))
    emit(args.json, found, report(found))
    return 0


def train(trainer: Trainer, task: Task, source: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Fit, evaluate, show; the results."""
    from pocketgrad.train.step import Stored

    summary = _planned(trainer, source, args)
    begun = time.perf_counter()
    history = trainer.history
    trainer.batch, trainer.stored = args.batch, Stored.of(source)
    if not args.eval:
        history = trainer.fit(
            source,
            args.epochs,
            args.batch,
            progress=_shown(args.monitor),
            checkpoint=args.checkpoint,
            checkpoint_every_s=args.checkpoint_every,
        )
    train_s = time.perf_counter() - begun
    progress, last = trainer.progress, history[-1] if history else None
    found = {
        "model": args.model,
        "data": source.name,
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
        **task.measure(trainer, source),
        "samples_per_s": median([e.samples_per_s for e in history]) if history else None,
        "train_s": train_s,
        "steps": progress.batches,
        "launches": summary.launch_count,
        "flops_per_step": summary.flops,
        "bytes_per_step": round(progress.moved / progress.batches) if progress.batches else None,
        "peak_bytes": trainer.session.allocated_nbytes,
        "samples": task.samples(trainer, source, Path(args.picture) if args.picture else None),
    }
    if args.predict:
        found["predictions"] = task.predict(trainer, source, Path(args.predict))
    return found


def _shown(monitor: bool) -> bool | Display:
    """How training is shown; sensors are drawn on a terminal only."""
    if not monitor:
        return True
    if not sys.stderr.isatty():
        _note("--monitor draws on a terminal; standard error is none, so epochs are listed only")
        return True
    from pocketgrad.profile.dashboard import Dashboard

    return Dashboard()


def _planned(trainer: Trainer, source: Any, args: argparse.Namespace) -> PlanSummary:
    try:
        return trainer.plan(args.batch, source)
    except (ShapeError, DtypeError) as error:
        raise type(error)(
            f"model '{args.model}' does not take the samples of data set '{source.name}' "
            f"({source.x.dtype} {list(source.sample_shape)}): {error}"
        ) from None


def report(found: dict[str, Any]) -> list[Table | str]:
    """The results for people."""
    shown = {"mean_return": ",.2f", "solved_at": ",.2f"}
    measured = ("bits_per_character", "exact", "f1", "mean_return", "solved_at")
    rows = [
        ("device", f"{found['device']}: {found['why']}"),
        ("test accuracy", _number(found["test_accuracy"], ".4f")),
        ("test loss", _number(found["test_loss"], ".4f")),
        *(
            (name.replace("_", " "), _number(found[name], shown.get(name, ".4f")))
            for name in measured
            if name in found
        ),
        ("speed", f"{_number(found['samples_per_s'], ',.0f')} samples/s"),
        ("training time", duration(found["train_s"])),
        ("peak memory", f"{si(found['peak_bytes'], 'B')} on the device"),
        ("moved per step", f"{si(found['bytes_per_step'] or 0, 'B')} between host and device"),
        ("launches per step", f"{found['launches']}, {si(found['flops_per_step'], 'flop')}"),
    ]
    if "saved" in found:
        rows.append(("saved", found["saved"]))
    title = f"{found['model']} on {found['data']}, {found['epochs']} epochs of {found['batch']}"
    parts: list[Table | str] = [Table(title, ("result", "value"), rows)]
    parts += [*found["samples"], *found.get("predictions", [])]
    return parts


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
    if args.eval and not (args.weights or args.resume):
        raise SettingError("--eval measures trained weights: give --weights FILE, or --resume")
    if args.width is not None and not args.width > 0:
        raise SettingError(f"--width {args.width}: choose a number above 0")
    if args.epochs < 1:
        raise SettingError(f"--epochs {args.epochs}: choose 1 or more")
    if args.batch < 1:
        raise SettingError(f"--batch {args.batch}: choose 1 or more")
    if not args.checkpoint_every >= 0:
        raise SettingError(f"--checkpoint-every {args.checkpoint_every}: choose 0 or more seconds")


def _begin(trainer: Trainer, args: argparse.Namespace) -> None:
    if args.weights:
        trainer.load(args.weights)
    if args.resume:
        _resume(trainer, Path(args.checkpoint), args.eval)


def _resume(trainer: Trainer, folder: Path, needed: bool) -> None:
    from pocketgrad.engine.checkpoint import files

    if not needed and not files(folder):
        _note(f"there is no checkpoint in '{folder}' yet: training begins")
        return
    path = trainer.resume(folder)
    _note(f"resumed '{path}' after {trainer.progress.batches} batches")


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _number(value: float | None, form: str) -> str:
    return "not available" if value is None else format(value, form)
