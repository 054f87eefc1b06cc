"""The computer at the other end of the USB cable: it enumerates the board and serves its CDC serial port.

Packets take the time they take on a full-speed bus (12 Mbit/s), so that the firmware is never answered while it still
holds a lock: about 8 microseconds for a transaction and 0.75 for a byte. What the board sends is fetched a little
later, because the host asks an endpoint that had nothing only every so often.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from toolkit.emulation.rp2350.timeline import Timeline
from toolkit.emulation.rp2350.usb_device import UsbDevice

PACKET = 64
BOOTSEL_BAUD = 1200

_DEBOUNCE_US = 10_000  # attached this long before the host resets the bus
_RESET_US = 10_000
_FRAME_US = 1_000
_TRANSACTION_US = 8.0
_ASKING_US = 8.0
_BYTE_US = 0.75
_REPLY_TIMEOUT_US = 5_000_000
_ATTEMPTS = 3

_GET_DESCRIPTOR = 6
_SET_ADDRESS = 5
_SET_CONFIGURATION = 9
_DEVICE, _CONFIGURATION, _STRING = 1, 2, 3
_ENGLISH = 0x0409
_INTERFACE_DESCRIPTOR, _ENDPOINT_DESCRIPTOR = 4, 5
_CDC_CONTROL_CLASS, _CDC_DATA_CLASS = 0x02, 0x0A
_SET_LINE_CODING = 0x20
_SET_CONTROL_LINE_STATE = 0x22
_TO_HOST = 0x80
_CLASS_INTERFACE = 0x21


@dataclass(frozen=True, slots=True)
class Request:
    """A control request; `data` for requests to the device, `length` for those to the host."""

    kind: int
    request: int
    value: int
    index: int = 0
    data: bytes = b""
    length: int = 0

    def packet(self) -> bytes:
        length = self.length or len(self.data)
        return struct.pack("<BBHHH", self.kind, self.request, self.value, self.index, length)


class RefusedError(Exception):
    """The device stalled a request, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class SerialFunction:
    """A CDC function as its descriptors announce it."""

    vid: int
    pid: int
    serial_number: str
    product: str
    control_interface: int
    endpoint_in: int
    endpoint_out: int


_Script = Generator[Request, bytes, None]


class UsbHost:
    """Host controller and driver.

    Args:
        device: the controller of the board.
        timeline: virtual time.
        appeared: called when a serial function is configured.
        vanished: called when the device leaves the bus.
        received: takes the bytes that the board sends.
    """

    def __init__(
        self,
        device: UsbDevice,
        timeline: Timeline,
        appeared: Callable[[SerialFunction], None],
        vanished: Callable[[], None],
        received: Callable[[bytes], None],
    ) -> None:
        self._device = device
        self._timeline = timeline
        self._appeared = appeared
        self._vanished = vanished
        self._received = received
        self._requests: deque[Request] = deque()
        self._script: _Script | None = None
        self._current: _Transfer | None = None
        self._busy = False
        self._turn = False
        self._attempts = 0
        self._address = 0
        self.function: SerialFunction | None = None
        self.outgoing = bytearray()
        self.listening = False  # whether a program has the port open
        self.connectable = True  # whether the cable is plugged in
        device.on_change = self.notice

    # --- what the desk does ------------------------------------------------------------------------------------------

    def open_port(self, baud: int) -> None:
        """A program opened the port: DTR and RTS go up."""
        self.listening = True
        self.set_baud(baud)
        self._request(Request(_CLASS_INTERFACE, _SET_CONTROL_LINE_STATE, 3, self._interface))

    def close_port(self) -> None:
        self.listening = False
        self._request(Request(_CLASS_INTERFACE, _SET_CONTROL_LINE_STATE, 0, self._interface))

    def set_baud(self, baud: int) -> None:
        coding = struct.pack("<IBBB", baud, 0, 0, 8)
        self._request(Request(_CLASS_INTERFACE, _SET_LINE_CODING, 0, self._interface, coding))

    def send(self, data: bytes) -> None:
        """Bytes for the board."""
        self.outgoing += data
        self.notice()

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to do until the board does something."""
        return not self.outgoing and self._current is None and not self._requests and self._script is None

    @property
    def _interface(self) -> int:
        return self.function.control_interface if self.function else 0

    def _request(self, request: Request) -> None:
        if self.function is not None:
            self._requests.append(request)
            self.notice()

    # --- attachment --------------------------------------------------------------------------------------------------

    def notice(self) -> None:
        """The device, or what is to be sent, changed."""
        attached = self._device.attached and self.connectable
        if not attached:
            self._detach()
        elif self._script is None and self.function is None and not self._timeline.planned("usb attach"):
            if not self._timeline.planned("usb reset") and self._attempts < _ATTEMPTS:
                self._timeline.after_us("usb attach", _DEBOUNCE_US, self._reset_bus)
        else:
            self._serve()
        if attached and self._device.wants_frames and not self._timeline.planned("usb frame"):
            self._timeline.after_us("usb frame", _FRAME_US, self._frame)

    def _detach(self) -> None:
        for name in ("usb attach", "usb reset", "usb transaction", "usb timeout", "usb frame"):
            self._timeline.cancel(name)
        self._script = self._current = None
        self._requests.clear()
        self.outgoing.clear()
        self._busy = False
        self._attempts = 0
        self.listening = False
        if self.function is not None:
            self.function = None
            self._vanished()

    def _reset_bus(self) -> None:
        self._address = 0
        self._attempts += 1
        self._device.bus_reset()
        self._timeline.after_us("usb reset", _RESET_US, self._enumerate)

    def _frame(self) -> None:
        if self._device.attached and self._device.wants_frames:
            self._device.start_of_frame()
            self._timeline.after_us("usb frame", _FRAME_US, self._frame)

    def _enumerate(self) -> None:
        if not self._device.reset_seen:
            self._timeline.after_us("usb reset", _FRAME_US, self._enumerate)
            return
        self._script = self._enumeration()
        self._advance(None)

    def _advance(self, reply: bytes | None) -> None:
        """Go on with the script: the reply to its last request, None at its beginning."""
        if self._script is None:
            return
        try:
            request = next(self._script) if reply is None else self._script.send(reply)
        except (StopIteration, RefusedError, IndexError, struct.error, UnicodeDecodeError):
            self._script = None
            if self.function is None and self._attempts < _ATTEMPTS:
                self._timeline.after_us("usb attach", _DEBOUNCE_US, self._reset_bus)
            return
        self._requests.append(request)
        self._serve()

    def _enumeration(self) -> _Script:
        """What an operating system asks of a new device."""
        device = yield Request(_TO_HOST, _GET_DESCRIPTOR, _DEVICE << 8, length=18)
        yield Request(0, _SET_ADDRESS, 1)
        self._address = 1
        head = yield Request(_TO_HOST, _GET_DESCRIPTOR, _CONFIGURATION << 8, length=9)
        (total,) = struct.unpack_from("<H", head, 2)
        configuration = yield Request(_TO_HOST, _GET_DESCRIPTOR, _CONFIGURATION << 8, length=total)
        vid, pid = struct.unpack_from("<HH", device, 8)
        texts = []
        for number in (device[15], device[16]):
            text = b""
            if number:
                text = yield Request(_TO_HOST, _GET_DESCRIPTOR, _STRING << 8 | number, _ENGLISH, length=255)
            texts.append(text[2:].decode("utf-16-le"))
        yield Request(0, _SET_CONFIGURATION, configuration[5])
        serial = _serial_function(configuration, vid, pid, texts[0], texts[1])
        if serial is not None:
            self.function = serial
            self._appeared(serial)

    # --- the bus -----------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Begin the next transaction, if there is one that the device would not NAK."""
        if self._busy or not self._device.attached or self._device.address != self._address:
            return
        if self._current is None and self._requests:
            self._current = _Transfer(self._requests.popleft())
            self._timeline.after_us("usb timeout", _REPLY_TIMEOUT_US, lambda: self._finish(None))
        if self._current is not None:
            cost = self._current.next_cost(self._device)
            if cost is not None:
                self._transact(cost, self._continue_control)
                return
        self._serve_bulk()

    def _serve_bulk(self) -> None:
        if self.function is None:
            return
        self._turn = not self._turn  # in turn, so that neither direction starves
        for into_host in (self._turn, not self._turn):
            if into_host and self.listening:
                length = self._device.ready(self.function.endpoint_in, into_host=True)
                if length is not None and length >= 0:
                    self._transact(length, self._take, _ASKING_US)
                    return
            elif not into_host and self.outgoing:
                room = self._device.ready(self.function.endpoint_out, into_host=False)
                if room is not None and room >= 0:
                    self._transact(min(PACKET, len(self.outgoing)), self._give)
                    return

    def _transact(self, length: int, complete: Callable[[], None], delay_us: float = 0.0) -> None:
        self._busy = True

        def done() -> None:
            self._busy = False
            complete()
            self._serve()

        self._timeline.after_us("usb transaction", delay_us + _TRANSACTION_US + _BYTE_US * length, done)

    def _take(self) -> None:
        function = self.function
        if function is None:
            return
        length = self._device.ready(function.endpoint_in, into_host=True)
        if length is not None and length >= 0:
            self._received(self._device.take(function.endpoint_in))

    def _give(self) -> None:
        function = self.function
        if function is not None and self._device.ready(function.endpoint_out, into_host=False) == PACKET:
            packet = bytes(self.outgoing[:PACKET])
            del self.outgoing[:PACKET]
            self._device.give(function.endpoint_out, packet)

    def _continue_control(self) -> None:
        if self._current is not None and self._current.step(self._device):
            self._finish(self._current)

    def _finish(self, transfer: _Transfer | None) -> None:
        """A control transfer ended; None where it took too long."""
        self._timeline.cancel("usb timeout")
        current, self._current = self._current, None
        if self._script is None:
            return
        if transfer is None or transfer.stalled:
            if current is not None and current.request.value >> 8 == _STRING:
                self._advance(b"\x02\x03")  # a device may be without texts
            else:
                self._script = None
                if self._attempts < _ATTEMPTS:
                    self._timeline.after_us("usb attach", _DEBOUNCE_US, self._reset_bus)
        else:
            self._advance(bytes(transfer.reply))


class _Transfer:
    """A control transfer on endpoint 0: setup, data, status."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.reply = bytearray()
        self.stalled = False
        self._sent = 0
        self._stage = "setup"

    @property
    def _into_host(self) -> bool:
        """Direction of the stage that is next."""
        reads = bool(self.request.kind & _TO_HOST)
        return reads if self._stage == "data" else not reads

    def next_cost(self, device: UsbDevice) -> int | None:
        """Bytes of the next transaction; None while the device would NAK it."""
        if self._stage == "setup":
            return 8
        if not device.setup_seen:
            return None
        ready = device.ready(0, into_host=self._into_host)
        if ready is None:
            return None
        if ready < 0 or self._into_host:
            return max(0, ready)
        return min(PACKET, len(self.request.data) - self._sent) if self._stage == "data" else 0

    def step(self, device: UsbDevice) -> bool:
        """Carry out the next transaction; True when the transfer is over."""
        if self._stage == "setup":
            device.setup(self.request.packet())
            self._stage = "data" if self.request.length or self.request.data else "status"
            return False
        ready = device.ready(0, into_host=self._into_host)
        if ready is None:
            return False
        if ready < 0:
            self.stalled = True
            return True
        if self._stage == "status":
            if self._into_host:
                device.take(0)
            else:
                device.give(0, b"")
            return True
        if self._into_host:
            packet = device.take(0)
            self.reply += packet
            over = len(packet) < PACKET or len(self.reply) >= self.request.length
        else:
            packet = self.request.data[self._sent : self._sent + PACKET]
            device.give(0, packet)
            self._sent += len(packet)
            over = self._sent >= len(self.request.data)
        if over:
            self._stage = "status"
        return False


def _serial_function(configuration: bytes, vid: int, pid: int, product: str, serial: str) -> SerialFunction | None:
    """The first CDC function of a configuration."""
    position, kind, control = 0, -1, -1
    endpoints: dict[bool, int] = {}
    while position + 2 <= len(configuration):
        length, descriptor = configuration[position], configuration[position + 1]
        if length < 2:
            break
        if descriptor == _INTERFACE_DESCRIPTOR:
            kind = configuration[position + 5]
            if kind == _CDC_CONTROL_CLASS and control < 0:
                control = configuration[position + 2]
        elif descriptor == _ENDPOINT_DESCRIPTOR and kind == _CDC_DATA_CLASS:
            address = configuration[position + 2]
            endpoints.setdefault(bool(address & _TO_HOST), address & 0xF)
        position += length
    if control < 0 or len(endpoints) < 2:
        return None
    return SerialFunction(vid, pid, serial, product, control, endpoints[True], endpoints[False])
