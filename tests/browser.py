"""A real Chromium without a window, told over its debugging pipe: goes to pages, types, looks, takes pictures."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One page of a browser with a fresh profile; `violations` are what its console said of content that was blocked."""

    def __init__(self, *, is_dark: bool = False, width: int = 1_200, height: int = 800) -> None:
        program = chromium()
        assert program is not None, "there is no Chromium on this machine"
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        told, self._tell = os.pipe()
        self._hear, answers = os.pipe()
        # The browser reads its descriptor 3 and writes to 4.
        script = f'exec 3<&{told} 4>&{answers}; exec "$@"'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                script,
                "bash",
                program,
                *_FLAGS,
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            pass_fds=(told, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(told)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.tell(f"{domain}.enable")
        self.size(width, height)
        scheme = "dark" if is_dark else "light"
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command of the DevTools protocol; its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._tell, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._next(30)
            if heard.get("id") == number:
                assert "error" not in heard, heard["error"]
                return heard.get("result", {})
            self._events.append(heard)

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def go(self, address: str) -> None:
        """Navigate and wait until the page is loaded."""
        self._events.clear()
        self.tell("Page.navigate", url=address)
        self.wait_loaded()

    def wait_loaded(self) -> None:
        end = time.monotonic() + 20
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next(end - time.monotonic()))

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.tell("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def click(self, selector: str) -> None:
        """Click and wait for the page that it leads to."""
        self._events.clear()
        self.tell("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)}).click()")
        self.wait_loaded()

    def write(self, selector: str, text: str) -> None:
        self.ask(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def requested(self) -> list[str]:
        """The addresses that were asked for since the last navigation."""
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """What the browser logged since the last navigation: blocked content, missing files, errors."""
        return [
            event["params"]["entry"]["text"]
            for event in self._events
            if event.get("method") == "Log.entryAdded"
        ]

    def picture(self, file: Path, *, whole: bool = False) -> None:
        shot = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._tell)
        os.close(self._hear)
        self._profile.cleanup()

    def _next(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._hear], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser said nothing"
            part = os.read(self._hear, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
