"""The programs that upload: where they are, and how a run of one ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ToolError

_LOOK_S = 0.2
_GONE_S = 1.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        name: of the program.
        status: its exit status; negative for the number of the signal that ended it, None when we ended it.
        out, err: what it wrote.
        stopped: why we ended it; empty when we did not.
    """

    name: str
    status: int | None
    out: str
    err: str
    stopped: str = ""

    @property
    def said(self) -> list[str]:
        """Its lines, those of stderr last."""
        # A progress bar returns to the start of its line.
        lines = (self.out + "\n" + self.err).replace("\r", "\n").splitlines()
        return [line.strip() for line in lines if line.strip()]

    @property
    def violent(self) -> str | None:
        """What was done to it, when it did not end by itself."""
        if self.status is None:
            return self.stopped
        if self.status < 0:
            return f"{self.name} was ended by signal {-self.status} ({_signal_name(-self.status)})"
        return None

    @property
    def reason(self) -> str:
        """Why it failed, in one line."""
        if self.violent:
            return self.violent
        return self.said[-1] if self.said else f"{self.name} ended with status {self.status}"


def run(command: Sequence[str], seconds: float, *, there: Callable[[], bool] = lambda: True) -> Ended:
    """Run a program to its end, in a process group of its own that never outlives this call.

    Args:
        command: the program and its words.
        seconds: how long it may take.
        there: whether what it works on is still there. When that has been gone for a while, the program is ended:
            bossac waits for ever for a port that was pulled out.

    Raises:
        ToolError: it does not start.
    """
    name = Path(command[0]).stem
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(
            f"{name} does not start: {error.strerror}", where=command[0], hint="Is it made for this computer?"
        ) from None
    with process:
        try:
            return _watch(process, name, seconds, there)
        except BaseException:  # Ctrl-C among them: whoever goes leaves nothing behind
            _kill(process)
            process.wait()  # the block's own end does not wait after Ctrl-C
            raise


def _watch(process: subprocess.Popen[str], name: str, seconds: float, there: Callable[[], bool]) -> Ended:
    now = time.monotonic()
    deadline, seen = now + seconds, now
    while True:
        try:
            out, err = process.communicate(timeout=_LOOK_S)
            return Ended(name, process.returncode, out, err)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            seen = now if there() else seen
            stopped = f"{name} was not done after {seconds:.0f} s" if now > deadline else ""
            stopped = stopped or ("the port went away during the upload" if now - seen > _GONE_S else "")
            if stopped:
                _kill(process)
                out, err = process.communicate()
                return Ended(name, None, out, err, stopped)


def find_uploader(name: str, package: str) -> Path:
    """Where an uploader is: named by a variable, of an Arduino core (which knows all its boards), or on PATH.

    Raises:
        ToolError: nowhere.
    """
    named = os.environ.get(name.upper().replace("-", "_"))
    if named is None:
        folder = Path(os.environ.get("ARDUINO_DIRECTORIES_DATA") or Path.home() / ".arduino15")
        cores = sorted(folder.glob(f"packages/arduino/tools/{name}/*/{name}"))
        named = str(cores[-1]) if cores else name
    found = shutil.which(named)
    if found is None:
        raise ToolError(
            f"{name} is not installed; it uploads",
            where=named,
            hint=f"It comes with the board's core (arduino-cli core install …); on Debian: apt-get install {package}.",
        )
    return Path(found)


def _kill(process: subprocess.Popen[str]) -> None:
    """End a program and what it has started itself."""
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        process.kill()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
