"""What a comparison gives, as JSON: raw values, and the statistics and speedups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pocketgrad.bench.adapters import OURS
from pocketgrad.bench.disturbance import findings
from pocketgrad.bench.runner import LEAD, Block, Entry
from pocketgrad.bench.stats import ratio, spread
from pocketgrad.bench.task import Workload
from pocketgrad.bench.unrest import factors, unsteadiness

FORMAT = "pocketgrad-bench-1"
Ceilings = Mapping[str, Sequence[Mapping[str, float]]]  # by device, in order of measuring


def result(
    workload: Workload, entries: Mapping[str, Entry], flops: int, more: Mapping[str, Any]
) -> dict[str, Any]:
    """One comparison; ``more`` is what the caller knows of the machine and the command."""
    known = list(entries.values())
    ceilings = more.get("ceilings", {})
    common = factors([e.times for e in known if e.took_part])
    speedups = speedups_of(known)
    best = best_torch(speedups)
    return {
        "format": FORMAT,
        "workload": {**workload.to_json(), "step_flops": flops, "loss": "cross-entropy",
                     "optimizer": "SGD with momentum", "dropout": "off"},
        **more,
        "participants": [described(entry, flops, ceilings, common) for entry in known],
        "round_factors": common,
        "disturbances": [asdict(f) for f in unsteadiness(common)],
        "speedup": speedups,
        "speedup_best_torch_fp32": best["value"] if best else None,
        "best_torch_fp32": best,
    }  # fmt: skip


def described(
    entry: Entry, flops: int, ceilings: Ceilings, common: Sequence[float]
) -> dict[str, Any]:
    """One participant."""
    variant = entry.participant.variant
    found: dict[str, Any] = {
        "name": entry.participant.name,
        "peer": entry.participant.adapter,
        "variant": variant.name,
        "meaning": variant.meaning,
        "precision": variant.precision,
        "env": dict(variant.env),
        "outcome": entry.outcome,
        "reason": entry.reason,
        **entry.loaded,
        **{key: value for key, value in entry.opened.items() if key != "loss"},
        "first_losses": entry.first_losses,
        "steps_per_block": entry.steps,
        "lead_steps": LEAD,
        "blocks": [raw(block) for block in entry.blocks],
        "warmups": [raw(block) for block in entry.warmups],
        "peak_nbytes": entry.told.get("peak_nbytes"),
        "facts": entry.told.get("facts", {}),
    }
    if entry.blocks:
        found |= _summary(entry, flops)
        found["disturbances"] = [asdict(f) for f in findings(entry.blocks, common)]
        found |= _shares(found, best_ceilings(ceilings, variant.name))
    return found


def raw(block: Block) -> dict[str, Any]:
    """A block as measured, without what is not known."""
    return {key: value for key, value in asdict(block).items() if value not in (None, {})}


def _summary(entry: Entry, flops: int) -> dict[str, Any]:
    middle = spread(entry.times)
    peak, idle = entry.told.get("peak_nbytes"), entry.loaded.get("idle_nbytes")
    nbytes = entry.told.get("facts", {}).get("step_nbytes")
    found: dict[str, Any] = {
        "median_s": middle.median,
        "quartiles_s": [middle.low, middle.high],
        "gflops": flops / middle.median / 1e9,
        "gb_per_s": nbytes / middle.median / 1e9 if nbytes else None,
        "growth_nbytes": peak - idle if peak and idle else None,
    }
    return found


def best_ceilings(ceilings: Ceilings, device: str) -> dict[str, float]:
    """The best seen: of one device, or for a peer of all."""
    seen = ceilings[device] if device in ceilings else [c for cs in ceilings.values() for c in cs]
    return {key: max(c.get(key, 0.0) for c in seen) for c in seen for key in c}


def _shares(found: Mapping[str, Any], best: Mapping[str, float]) -> dict[str, Any]:
    """Achieved rates as shares of the ceilings; Winograd's convolutions can exceed the first."""
    rates = {"share_of_fma_peak": ("gflops", "fma_gflops"),
             "share_of_copy_bandwidth": ("gb_per_s", "copy_gb_per_s")}  # fmt: skip
    return {
        share: found[rate] / best[ceiling] if found[rate] and best.get(ceiling) else None
        for share, (rate, ceiling) in rates.items()
    }


def speedups_of(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """For each device of ours and each peer: how much longer the peer's best float32 form takes."""
    found = []
    for mine in (e for e in entries if e.participant.adapter == OURS and e.took_part):
        for peer in dict.fromkeys(e.participant.adapter for e in entries):
            best = best_of(entries, peer)
            if peer == OURS or best is None:
                continue
            r = ratio(best.times, mine.times)
            pairs = [a / b for a, b in zip(best.times, mine.times, strict=False)]
            peaks = [e.told.get("peak_nbytes") for e in (best, mine)]
            found.append(
                {
                    "device": mine.participant.variant.name,
                    "peer": peer,
                    "variant": best.participant.variant.name,
                    "value": r.value,
                    "low": r.low,
                    "high": r.high,
                    "paired": spread(pairs).median,  # of the ratios within each round
                    "memory": peaks[1] / peaks[0] if peaks[0] and peaks[1] else None,
                }
            )
    return found


def best_of(entries: Sequence[Entry], peer: str) -> Entry | None:
    """The fastest form of a peer that computes in float32."""
    able = [
        e
        for e in entries
        if e.participant.adapter == peer
        and e.participant.variant.precision == "float32"
        and e.took_part
    ]
    return min(able, key=lambda e: spread(e.times).median, default=None)


def best_torch(speedups: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """On our best device, against the best float32 form of PyTorch."""
    ours = [s for s in speedups if s["peer"] == "torch"]
    return dict(max(ours, key=lambda s: s["value"])) if ours else None
