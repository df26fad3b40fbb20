"""`pocketgrad bench`: training steps here and in other frameworks, side by side."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pocketgrad.base.errors import SettingError
from pocketgrad.base.units import duration, si
from pocketgrad.cli.output import Table, add_json, emit

if TYPE_CHECKING:
    from pocketgrad.bench.api import Participant
    from pocketgrad.bench.runner import Settings
    from pocketgrad.bench.task import Workload

NAME = "bench"
HELP = "measure training steps beside other frameworks, interleaved, from the same weights"
EXAMPLE = "pocketgrad bench compare --model lenet5 --batch 32 --peers torch --json"
INTERRUPTED, SLOWER = 130, 1
CEILINGS = (("fma_gflops", "GFLOPS of multiply-adds"), ("copy_gb_per_s", "GB/s copied"))
COMPARE_EXAMPLES = """examples:
  pocketgrad bench compare --model lenet5 --batch 32 --peers torch
  pocketgrad bench compare --model resnet50 --image 32 --batch 16 --devices pocl --peers torch:eager
  pocketgrad bench compare --model model1 --batch 32 --peers torch --json > model1.json
  pocketgrad bench compare --suite table --peers torch --out results"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Its commands."""
    commands = parser.add_subparsers(dest="bench", metavar="COMMAND", required=True)
    about = "one model on our devices and on peers; ends with the speedups"
    compare = commands.add_parser(
        "compare", help=about, description=f"{about.capitalize()}.", epilog=COMPARE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    _workload_arguments(compare)
    _measuring_arguments(compare)
    _output_arguments(compare)
    add_json(compare)
    about = "make the environments of peers, each with pinned versions, in the cache folder"
    setup = commands.add_parser("setup", help=about, description=f"{about.capitalize()}.")
    setup.add_argument(
        "peers", nargs="+", metavar="PEER", help="torch, jax, tensorflow, mnn or tinygrad"
    )
    add_json(setup)
    about = "what our devices can do at best: multiply-adds per second, copied bytes per second"
    ceilings = commands.add_parser("ceilings", help=about, description=f"{about.capitalize()}.")
    ceilings.add_argument("--devices", metavar="D,…", help="OpenCL devices (default: all usable)")
    add_json(ceilings)


def _workload_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", default="lenet5", metavar="NAME", help="one of `pocketgrad models`")
    add("--batch", type=int, default=32, metavar="B", help="samples in a step")
    add("--image", type=int, metavar="SIZE", help="height and width, where the model takes any")
    add("--lr", type=float, default=0.005, metavar="R", help="learning rate of all participants")
    add("--seed", type=int, default=0, metavar="S", help="of weights and batches")
    add("--numerics", default="fast", metavar="NAME",
        help="of ours: fast, or strict (no Winograd convolutions)")  # fmt: skip


def _measuring_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--devices", metavar="D,…",
        help="OpenCL devices of ours (default: all usable; 'none' for peers only)")  # fmt: skip
    add("--peers", default="torch", metavar="P,…",
        help="frameworks, or one variant of one: torch, torch:channels-last ('none': ours "
        "only)")  # fmt: skip
    add("--seconds", type=float, default=5.0, metavar="S", help="timed, for each participant")
    add("--rounds", type=int, default=15, metavar="N", help="blocks that the seconds are cut into")
    add("--steps", type=int, metavar="K", help="steps of a block (default: found by calibration)")
    add("--threads", type=int, metavar="N", help="of each peer (default: all cores)")


def _output_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--suite", metavar="NAME",
        help="many workloads in place of --model, --batch and --image: table, batches, quick; "
        "needs --out, a folder, where it goes on if it was cut")  # fmt: skip
    add("--out", metavar="PATH", help="also write the JSON to this file (a folder with --suite)")
    add("--at-least", type=float, metavar="R",
        help="leave with code 1 unless speedup_best_torch_fp32 reaches R")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    commands = {"compare": run_compare, "setup": run_setup, "ceilings": run_ceilings}
    return commands[args.bench](args)


def run_ceilings(args: argparse.Namespace) -> int:
    """Measure each device in a process of its own."""
    from pocketgrad.bench.compare import participants
    from pocketgrad.bench.remote import Remote

    found = {}
    for participant in participants(devices(args.devices), []):
        remote = Remote(participant)
        try:
            found[participant.variant.name] = remote.ask("ceilings")["ceilings"]
        finally:
            remote.close()
    rows = [
        (name, *(f"{each[key]:.1f}" for key in ("fma_gflops", "copy_gb_per_s")))
        for name, each in found.items()
    ]
    columns = ("device", "multiply-adds, GFLOPS", "copy, GB/s")
    emit(args.json, {"ceilings": found}, [Table("", columns, rows, "lrr")])
    return 0


def run_setup(args: argparse.Namespace) -> int:
    """Make environments, one after the other."""
    from pocketgrad.bench.environments import set_up

    made = {peer: str(set_up(peer, _note)) for peer in args.peers}
    emit(args.json, {"environments": made}, [f"{p}: {folder}" for p, folder in made.items()])
    return 0


def run_compare(args: argparse.Namespace) -> int:
    """Measure, print, judge."""
    from pocketgrad.bench.compare import compare, participants

    takers = participants(devices(args.devices), _words(args.peers))
    if not takers:
        raise SettingError("nobody takes part: name --devices or --peers")
    if args.suite:
        return run_suite(args, takers)
    found = compare(workload(args), takers, measuring(args), _note)
    if args.out:
        Path(args.out).write_text(json.dumps(found, indent=1) + "\n")
    emit(args.json, found, report(found))
    return exit_code(found, args.at_least)


def run_suite(args: argparse.Namespace, takers: list[Participant]) -> int:
    """All rows of a suite; the summary."""
    from pocketgrad.bench.compare import compare
    from pocketgrad.bench.suites import suite
    from pocketgrad.bench.sweep import sweep

    if not args.out:
        raise SettingError(f"--suite {args.suite} needs --out DIR, the folder of its results")
    settings = measuring(args)
    found = sweep(
        suite(args.suite),
        Path(args.out),
        lambda row: compare(row.workload, takers, settings, _note),
        _note,
    )
    emit(args.json, found, suite_report(found))
    if found["interrupted"]:
        return INTERRUPTED
    reached = [r["speedup_best_torch_fp32"] or 0 for r in found["rows"]]
    least = [r["at_least"] for r in found["rows"]]
    return SLOWER if any(a < b for a, b in zip(reached, least, strict=True)) else 0


def suite_report(found: dict[str, Any]) -> list[Table | str]:
    """One line per row for people."""
    rows = []
    for r in found["rows"]:
        best, least = r["best"], r["at_least"]
        value = best["value"] if best else 0.0
        interval = f"{best['low']:.2f} to {best['high']:.2f}" if best else "–"
        where = f"{best['device']} over {best['variant']}" if best else "–"
        memory = f"{best['memory']:.0%}" if best and best["memory"] else "–"
        verdict = "reached" if value >= least else "missed"
        image = str(r["image"] or "–")
        rows.append((r["model"], str(r["batch"]), image, f"{value:.2f}", interval, f"{least:g}",
                     verdict, where, memory, "yes" if r["disturbed"] else ""))  # fmt: skip
    columns = ("model", "batch", "image", "speedup", "interval", "at least", "", "device",
               "memory", "disturbed")  # fmt: skip
    mean = _number(found["geometric_mean_convolutional"], ".2f")
    parts: list[Table | str] = [Table("speedup over the best float32 form of PyTorch", columns,
                                      rows, "lrrrrrllrl")]  # fmt: skip
    if found["missing"]:
        parts.append(f"{found['missing']} rows are missing; the same command goes on with them")
    return [*parts, f"geometric mean over the convolutional models: {mean}"]


def exit_code(found: dict[str, Any], at_least: float | None) -> int:
    """130 after Ctrl-C, 1 when ours failed or is slower than was asked."""
    if found["interrupted"]:
        return INTERRUPTED
    ours = [p for p in found["participants"] if p["peer"] == "pocketgrad"]
    failed = any(p["outcome"] != "ok" for p in ours)
    speedup = found["speedup_best_torch_fp32"]
    missed = at_least is not None and (speedup is None or speedup < at_least)
    return SLOWER if failed or missed else 0


def workload(args: argparse.Namespace) -> Workload:
    """What is trained."""
    from pocketgrad.bench.task import Workload

    return Workload(args.model, args.batch, args.image, args.seed, args.lr, numerics=args.numerics)


def measuring(args: argparse.Namespace) -> Settings:
    """How long."""
    from pocketgrad.bench.runner import Settings

    threads = os.cpu_count() or 1 if args.threads is None else args.threads
    return Settings(args.seconds, args.rounds, args.steps, threads)


def devices(named: str | None) -> list[str]:
    """Selectors of our devices: those named, or all that can be used."""
    if named is not None:
        return _words(named)
    from pocketgrad.backends import platforms

    return [device.ident for device in platforms.survey().usable]


def _words(text: str) -> list[str]:
    return [] if text == "none" else [word.strip() for word in text.split(",") if word.strip()]


def report(found: dict[str, Any]) -> list[Table | str]:
    """The results for people."""
    work = found["workload"]
    image = f", image {work['image']}" if work["image"] else ""
    title = f"{work['model']}, batch {work['batch']}{image}: {si(work['step_flops'], 'flop')}/step"
    columns = ("participant", "step", "quartiles", "GFLOPS", "of peak", "GB/s", "launches", "peak",
               "arena", "first step", "outcome")  # fmt: skip
    parts: list[Table | str] = [
        Table(title, columns, [_row(p) for p in found["participants"]], "lrrrrrrrrrl")
    ]
    parts += [f"{p['name']}: {p['outcome']}: {p['reason']}" for p in found["participants"]
              if p["reason"]]  # fmt: skip
    parts += [
        f"{p['name']}: {d['kind']}: {d['text']}; {d['advice']}"
        for p in found["participants"]
        for d in p.get("disturbances", ())
    ]
    parts += [
        f"ceilings of {device}: "
        + ", ".join(
            f"{max(s[key] for s in seen):.3g} {unit}" for key, unit in CEILINGS if key in seen[0]
        )
        for device, seen in found["ceilings"].items()
        if seen
    ]
    parts += [f"{d['kind']}: {d['text']}; {d['advice']}" for d in found["disturbances"]]
    parts += found["notes"]
    parts += [
        f"speedup of {s['device']} over {s['peer']} ({s['variant']}): {s['value']:.2f} "
        f"[{s['low']:.2f} to {s['high']:.2f}], by rounds {s['paired']:.2f}" + _memory(s)
        for s in found["speedup"]
    ]
    best = found["speedup_best_torch_fp32"]
    return [*parts, f"speedup_best_torch_fp32: {_number(best, '.2f')}"]


def _memory(speedup: dict[str, Any]) -> str:
    share = speedup["memory"]
    return f", with {share:.0%} of its peak memory" if share else ""


def _row(p: dict[str, Any]) -> tuple[str, ...]:
    facts, outcome = p["facts"], p["outcome"]
    first = p["import_s"] + p["open_s"] + p["first_step_s"] if "first_step_s" in p else None
    if "median_s" not in p:
        return (p["name"], *["–"] * 9, outcome)
    low, high = p["quartiles_s"]
    return (
        p["name"],
        duration(p["median_s"]),
        f"{duration(low)} to {duration(high)}",
        f"{p['gflops']:.3g}",
        _number(p["share_of_fma_peak"], ".0%"),
        _number(p["gb_per_s"], ".3g"),
        _number(facts.get("launches"), "d"),
        si(p["peak_nbytes"], "B") if p["peak_nbytes"] else "–",
        si(facts["arena_nbytes"], "B") if "arena_nbytes" in facts else "–",
        duration(first) if first is not None else "–",
        outcome,
    )


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
