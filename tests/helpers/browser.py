"""Opens pages in a headless Chromium and asks it what became of them, over its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",  # file descriptors 3 and 4: no port, no socket
)
PATIENCE_S = 60
# Python hands descriptors on under their own numbers; Chromium wants 3 and 4.
HAND_ON = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def found() -> str | None:
    """Where a Chromium is."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One window. ``errors``: what the page complained of; ``requests``: all that it loaded."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="pocketgrad-chromium-")
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        flags = (*FLAGS, f"--user-data-dir={self._profile}", "about:blank")
        self._process = subprocess.Popen(
            [sys.executable, "-c", HAND_ON, str(commands), str(answers), path, *flags],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        os.set_blocking(self._from, False)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, page: Path, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        """Show a file that sets ``data-ready`` on its root when it is done."""
        self.errors, self.requests = [], []
        self.look(width, height, dark)
        self._call("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def look(self, width: int, height: int, dark: bool) -> None:
        """Another window size or theme, as a phone turned, or the evening, would bring."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Until an expression is true."""
        self._until(lambda: bool(self.ask(script)), script)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """An event of the mouse, such as ``mouseMoved``, in the window's pixels."""
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key: str) -> None:
        """Press and release."""
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path: Path) -> None:
        """The whole page, also what is below the window."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End the browser and remove its files."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answers: list[dict[str, Any]] = []
        self._until(lambda: self._read(number, answers), method)
        if "error" in answers[0]:
            raise AssertionError(f"{method}: {answers[0]['error']}")
        return answers[0]["result"]

    def _until(self, done: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not done():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise AssertionError(
                    f"Chromium (exit {self._process.poll()}) did not answer: {what}; "
                    f"complaints: {self.errors}"
                )
            time.sleep(0.01)

    def _read(self, number: int, answers: list[dict[str, Any]]) -> bool:
        try:
            self._buffer += os.read(self._from, 1 << 20)
        except BlockingIOError:
            return False
        *messages, self._buffer = self._buffer.split(b"\0")
        for text in messages:
            message = json.loads(text)
            if message.get("id") == number:
                answers.append(message)
            self._note(message)
        return bool(answers)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.errors.append(details.get("exception", details).get("description", details))
            case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                self.errors.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                self.errors.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
