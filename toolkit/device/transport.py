"""Frames over a serial port: COBS between zero bytes, closed by a CRC-32; plain text between frames is the log."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from types import TracebackType

import serial
from cobs import cobs

from toolkit.errors import DeviceError

BAUD = 115200
_POLL_S = 0.05
_LONGEST_CHUNK = 1 << 16


def encode_frame(content: bytes) -> bytes:
    """One frame, with the zero bytes that close what came before and end it."""
    crc = zlib.crc32(content).to_bytes(4, "little")
    return b"\0" + bytes(cobs.encode(content + crc)) + b"\0"


def decode_frame(chunk: bytes) -> bytes | None:
    """The content of what stood between two zero bytes, None when that is no frame."""
    try:
        decoded = bytes(cobs.decode(chunk))
    except cobs.DecodeError:
        return None
    content, crc = decoded[:-4], decoded[-4:]
    return content if len(crc) == 4 and zlib.crc32(content).to_bytes(4, "little") == crc else None


class Transport:
    """A serial port that sends and receives frames.

    Args:
        port: what pyserial opens: a device, a pty, or a URL (`socket://`, `rfc2217://`).
        log: told every line of plain text that the board prints.

    Raises:
        DeviceError: the port cannot be opened; later, when it goes away.
    """

    def __init__(self, port: str, *, log: Callable[[str], None] = lambda _: None) -> None:
        self.port = port
        self._log = log
        self._pending = bytearray()
        try:
            self._serial = serial.serial_for_url(port, baudrate=BAUD, timeout=_POLL_S, write_timeout=5)
        except (serial.SerialException, OSError, ValueError) as error:
            raise DeviceError(
                f"the port cannot be opened: {error}",
                where=port,
                hint="Is the board connected, the name right, and no other program using it?",
            ) from None

    def __enter__(self) -> Transport:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._serial.close()

    def send(self, content: bytes) -> None:
        """Send one frame."""
        try:
            self._serial.write(encode_frame(content))
        except serial.SerialTimeoutException:
            raise DeviceError(
                "the board takes no bytes", where=self.port, hint="Reset the board and try again."
            ) from None
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from None

    def receive(self, timeout_s: float) -> bytes | None:
        """The next frame's content, None when none came in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            while (end := self._pending.find(0)) >= 0:
                chunk = bytes(self._pending[:end])
                del self._pending[: end + 1]
                content = decode_frame(chunk) if chunk else None
                if content is not None:
                    return content
                self._show(chunk)
            if len(self._pending) > _LONGEST_CHUNK:
                self._show(bytes(self._pending))
                self._pending.clear()
            if time.monotonic() >= deadline:
                return None
            try:
                self._pending += self._serial.read(max(1, self._serial.in_waiting))
            except (serial.SerialException, OSError) as error:
                raise self._gone(error) from None

    def _show(self, chunk: bytes) -> None:
        text = chunk.decode("ascii", errors="replace")
        for line in text.splitlines():
            if line.strip() and line.isprintable():
                self._log(line)

    def _gone(self, error: Exception) -> DeviceError:
        return DeviceError(
            f"the board went away: {error}", where=self.port, hint="Check the cable and power, then run it again."
        )
