"""A web server on this machine that serves one file, as badly as a test asks for."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """What is served, how it goes wrong, and what was asked."""

    body: bytes
    ranges: bool = True  # answer 206 to a Range header
    cuts: list[int] = field(default_factory=list)  # bytes after which each reply breaks off
    statuses: list[int] = field(default_factory=list)  # errors to answer first
    asked: list[str] = field(default_factory=list)  # the Range header of each request, or ""
    url: str = ""


@contextmanager
def served(body: bytes, **faults: Any) -> Iterator[Served]:  # Any: the fields of Served
    """Serve while the block runs."""
    state = Served(body, **faults)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, state)

        def log_message(self, format: str, *args: object) -> None:  # its name there
            """Nothing: the test's output is not the place."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/folder/file.bin"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, state: Served) -> None:
    wanted = handler.headers.get("Range", "")
    state.asked.append(wanted)
    if state.statuses:
        handler.send_error(state.statuses.pop(0))
        return
    match = re.fullmatch(r"bytes=(\d+)-", wanted) if state.ranges else None
    start = int(match[1]) if match else 0
    if start >= len(state.body):
        handler.send_error(416)
        return
    handler.send_response(206 if match else 200)
    if match:
        end = len(state.body)
        handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{end}")
    handler.send_header("Content-Length", str(len(state.body) - start))
    handler.end_headers()
    stop = start + state.cuts.pop(0) if state.cuts else len(state.body)
    handler.wfile.write(state.body[start:stop])
