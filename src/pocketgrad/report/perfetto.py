"""A profile as a Perfetto trace: nested slices by queue, counters with units, flows to launches.

Needs the `perfetto` package. Timestamps are those of the profile (CLOCK_MONOTONIC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from math import isnan
from typing import Any

from pocketgrad.report.chrome import counters
from pocketgrad.report.curves import Curve
from pocketgrad.report.slices import Slice, Track, tracks
from pocketgrad.trace.model import Scalar
from pocketgrad.trace.profile import Profile

MOST_VALUES = 20_000  # of one counter
_SEQUENCE = 1
_TRAINING, _SAMPLES = 1, 2  # process numbers, and the tracks of these processes


def render(profile: Profile) -> bytes:
    """The whole trace; ImportError without the `perfetto` package."""
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    made, note = tracks(profile)
    writer = _Writer(TraceProtoBuilder())
    writer.process(_TRAINING, "training")
    writer.process(_SAMPLES, "samples")
    uuids = count(10)
    for uuid, track in zip(uuids, made, strict=False):
        writer.track(uuid, track.name, _TRAINING)
        for at_ns, piece in edges(track):
            writer.edge(uuid, at_ns, piece)
    for line in counters(profile):
        writer.counter(next(uuids), line, _SAMPLES)
    facts = {**profile.metadata, "left out": note} if note else dict(profile.metadata)
    writer.metadata(facts, made[0].slices[0].start_ns if made else 0)
    content: bytes = writer.builder.serialize()
    return content


def edges(track: Track) -> Iterator[tuple[int, Slice | None]]:
    """Begins (with their slice) and ends (None) of a track's slices, inner ones closed first."""
    opened: list[int] = []
    for piece in track.slices:
        while opened and opened[-1] <= piece.start_ns:
            yield opened.pop(), None
        yield piece.start_ns, piece
        opened.append(piece.end_ns)
    while opened:
        yield opened.pop(), None


class _Writer:
    """Packets with names that are sent once and then called by number."""

    def __init__(self, builder: Any) -> None:  # the package has no type information of its own
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

        self.builder = builder
        self._schema: Any = schema
        self._names: dict[tuple[str, str], int] = {}
        cleared = schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        self._packet().sequence_flags = cleared  # names begin here

    def process(self, pid: int, name: str) -> None:
        """A group of tracks."""
        descriptor = self._packet().track_descriptor
        descriptor.uuid = pid
        descriptor.process.pid = pid
        descriptor.process.process_name = name

    def track(self, uuid: int, name: str, parent: int) -> None:
        """A track of slices."""
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.name, descriptor.parent_uuid = uuid, name, parent
        descriptor.sibling_order_rank = uuid

    def edge(self, uuid: int, at_ns: int, piece: Slice | None) -> None:
        """The begin of a slice, or the end of the one that is open."""
        packet = self._packet(at_ns)
        event = packet.track_event
        event.track_uuid = uuid
        kinds = self._schema.TrackEvent
        event.type = kinds.TYPE_SLICE_END if piece is None else kinds.TYPE_SLICE_BEGIN
        if piece is None:
            return
        event.name_iid = self._iid(packet, "event_names", piece.name)
        event.flow_ids.extend(piece.flows_out)
        if piece.flow_in:
            event.terminating_flow_ids.append(piece.flow_in)
        self._annotate(packet, piece.args)

    def counter(self, uuid: int, line: Curve, parent: int) -> None:
        """A counter with its unit; of a long series the least and greatest of every stretch."""
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.name, descriptor.parent_uuid = uuid, line.name, parent
        if line.unit == "B":
            descriptor.counter.unit = self._schema.CounterDescriptor.UNIT_SIZE_BYTES
        else:
            descriptor.counter.unit_name = line.unit
        thin = line.thinned(MOST_VALUES)
        for t, value in zip(thin.t_ns.tolist(), thin.values.tolist(), strict=True):
            if not isnan(value):
                event = self._packet(t).track_event
                event.track_uuid = uuid
                event.type = self._schema.TrackEvent.TYPE_COUNTER
                event.double_counter_value = value

    def metadata(self, facts: Mapping[str, Scalar], at_ns: int) -> None:
        """What was measured, as a slice without length on a track of its own."""
        self.track(3, "about this profile", _TRAINING)
        piece = Slice("profile", at_ns, at_ns, facts)
        self.edge(3, at_ns, piece)
        self.edge(3, at_ns, None)

    def _packet(self, at_ns: int | None = None) -> Any:
        packet = self.builder.add_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        if at_ns is not None:
            packet.timestamp = at_ns
            packet.sequence_flags = self._schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return packet

    def _annotate(self, packet: Any, args: Mapping[str, Scalar]) -> None:
        for name, value in args.items():
            note = packet.track_event.debug_annotations.add()
            note.name_iid = self._iid(packet, "debug_annotation_names", name)
            if isinstance(value, bool):
                note.bool_value = value
            elif isinstance(value, int):
                note.int_value = value
            elif isinstance(value, float):
                note.double_value = value
            else:
                note.string_value_iid = self._iid(packet, "debug_annotation_string_values", value)

    def _iid(self, packet: Any, kind: str, text: str) -> int:
        known = self._names.get((kind, text))
        if known is not None:
            return known
        number = self._names[kind, text] = len(self._names) + 1
        entry = getattr(packet.interned_data, kind).add()
        entry.iid = number
        if kind == "debug_annotation_string_values":
            entry.str = text.encode()
        else:
            entry.name = text
        return number
