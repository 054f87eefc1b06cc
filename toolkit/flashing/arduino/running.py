"""The programs that upload: where they are, and how a run of one ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ToolError


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        name: of the program.
        status: its exit status; negative for the number of the signal that ended it, None when it took too long.
        out, err: what it wrote.
        seconds: how long it was allowed to take.
    """

    name: str
    status: int | None
    out: str
    err: str
    seconds: float

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
            return f"{self.name} was not done after {self.seconds:.0f} s"
        if self.status < 0:
            return f"{self.name} was ended by signal {-self.status} ({_signal_name(-self.status)})"
        return None

    @property
    def reason(self) -> str:
        """Why it failed, in one line."""
        if self.violent:
            return self.violent
        return self.said[-1] if self.said else f"{self.name} ended with status {self.status}"


def run(command: Sequence[str], seconds: float) -> Ended:
    """Run a program to its end, in a process group of its own that never outlives this call.

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
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            out, err = process.communicate()
            return Ended(name, None, out, err, seconds)
        except BaseException:  # Ctrl-C among them: whoever goes leaves nothing behind
            _kill(process)
            raise
    return Ended(name, process.returncode, out, err, seconds)


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
