"""The USB controller in device mode, and its dual-port RAM (datasheet, section 12.7)."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.emulation.rp2350.registers import Alias, Block, FirmwareError

_ADDR_ENDP = 0x00
_MAIN_CTRL = 0x40
_SOF_RD = 0x48
_SIE_CTRL = 0x4C
_SIE_STATUS = 0x50
_BUFF_STATUS = 0x58
_BUFF_CPU_SHOULD_HANDLE = 0x5C
_EP_ABORT = 0x60
_EP_ABORT_DONE = 0x64
_EP_STALL_ARM = 0x68
_INTR = 0x8C
_INTE = 0x90
_INTF = 0x94
_INTS = 0x98

_MAIN_ENABLE = 1 << 0
_MAIN_HOST = 1 << 1
_SIE_PULLUP = 1 << 16
_SIE_CTRL_RESET = 1 << 15  # pull-downs
_EP0_INT_1BUF = 1 << 29

_STATUS_VBUS = 1 << 0
_STATUS_SUSPENDED = 1 << 4
_STATUS_CONNECTED = 1 << 16
_STATUS_SETUP = 1 << 17
_STATUS_BUS_RESET = 1 << 19
_STATUS_CLEARABLE = 0xFF8E_1818 | _STATUS_SUSPENDED

_INT_BUFF_STATUS = 1 << 4
_INT_BUS_RESET = 1 << 12
_INT_SETUP = 1 << 16
_INT_SOF = 1 << 17
_INT_ABORT_DONE = 1 << 18

# Buffer control (table 1161), one halfword for each of two buffers.
_FULL = 1 << 15
_STALL = 1 << 11
_AVAILABLE = 1 << 10
_LENGTH = 0x3FF
_SELECT_FIRST = 1 << 12

# Endpoint control (table 1160).
_DOUBLE = 1 << 30
_EACH_BUFFER = 1 << 29
_BOTH_BUFFERS = 1 << 28
_BUFFER_ADDRESS = 0xFFC0

_CONTROL_END = 0x100  # setup packet, endpoint and buffer control; the buffers follow
_BUFFER_CONTROL = 0x80
_EP0_BUFFER = 0x100
SECOND_BUFFER = 64


class Dpram(Block):
    """4 KB of memory in which single bytes count; writes to the control words are noticed.

    Args:
        armed: called when a buffer control word was written.
    """

    def __init__(self, armed: Callable[[int], None]) -> None:
        super().__init__()
        self._armed = armed
        self.stored(range(0, 0x1000, 4))
        for word in range(_CONTROL_END // 4, 1024):
            self.registers.storable[word] = 1
        self._bytes = memoryview(self.registers.values).cast("B")

    def store(self, offset: int, size: int, value: int) -> None:
        self._bytes[offset : offset + size] = value.to_bytes(8, "little")[:size]
        if _BUFFER_CONTROL <= offset < _CONTROL_END:
            self._armed(offset & ~3)

    def put(self, offset: int, data: bytes) -> None:
        self._bytes[offset : offset + len(data)] = data

    def get(self, offset: int, size: int) -> bytes:
        return bytes(self._bytes[offset : offset + size])


class UsbDevice(Block):
    """The controller.

    Args:
        interrupt: its line.
        frame: gives the number of the current frame.
    """

    def __init__(self, interrupt: Callable[[bool], None], frame: Callable[[], int]) -> None:
        super().__init__()
        self._interrupt = interrupt
        self._frame = frame
        self.dpram = Dpram(self._buffer_control_written)
        self.on_change: Callable[[], None] = lambda: None
        self._second: set[int] = set()  # buffer control words whose second buffer is next
        self._status = 0
        self._done = 0  # BUFF_STATUS
        self._aborted = 0
        self._sof = False
        self.stored(offset for offset in range(0, 0x1000, 4) if offset != _SOF_RD)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.set(_SIE_CTRL, _SIE_CTRL_RESET)
        self.set(_MAIN_CTRL, 4)
        self._second.clear()
        self._status = self._done = self._aborted = 0
        self._sof = False
        self._raise()
        self.on_change()

    # --- what the host sees ------------------------------------------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Whether the device shows itself on the bus: enabled, with its pull-up on."""
        return bool(self.value(_MAIN_CTRL) & _MAIN_ENABLE and self.value(_SIE_CTRL) & _SIE_PULLUP)

    @property
    def address(self) -> int:
        """The address it answers to."""
        return self.value(_ADDR_ENDP) & 0x7F

    @property
    def wants_frames(self) -> bool:
        """Whether start-of-frame interrupts are on."""
        return bool(self.value(_INTE) & _INT_SOF)

    def bus_reset(self) -> None:
        self._status |= _STATUS_BUS_RESET | _STATUS_CONNECTED
        self._raise()

    @property
    def reset_seen(self) -> bool:
        """Whether the firmware has dealt with the last bus reset."""
        return not self._status & _STATUS_BUS_RESET

    def start_of_frame(self) -> None:
        self._sof = True
        self._raise()

    def setup(self, packet: bytes) -> None:
        """A SETUP packet: always accepted, ends a stall of endpoint 0."""
        self.dpram.put(0, packet)
        self.set(_EP_STALL_ARM, 0)
        self._status |= _STATUS_SETUP
        self._raise()

    @property
    def setup_seen(self) -> bool:
        return not self._status & _STATUS_SETUP

    def ready(self, endpoint: int, *, into_host: bool) -> int | None:
        """Bytes the next packet can have, where the device would not NAK; None where it would; -1 for a stall.

        For a packet into the host that is its length.
        """
        place = self._place(endpoint, into_host)
        word = self._word(place)
        if word & _STALL and (endpoint or self.value(_EP_STALL_ARM) >> (0 if into_host else 1) & 1):
            return -1
        half = self._half(place, word)
        if not half & _AVAILABLE or bool(half & _FULL) != into_host:
            return None
        if self.value(_EP_ABORT) >> self._bit(endpoint, into_host) & 1:
            return None
        return half & _LENGTH if into_host else 64

    def take(self, endpoint: int) -> bytes:
        """The packet that `ready` announced goes to the host."""
        place = self._place(endpoint, True)
        length = self._half(place, self._word(place)) & _LENGTH
        data = self.dpram.get(self._buffer(endpoint, True, place), length)
        self._complete(endpoint, True, place, length)
        return data

    def give(self, endpoint: int, data: bytes) -> None:
        """A packet comes from the host, where `ready` said that it can."""
        place = self._place(endpoint, False)
        self.dpram.put(self._buffer(endpoint, False, place), data)
        self._complete(endpoint, False, place, len(data))

    # --- buffers -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _place(endpoint: int, into_host: bool) -> int:
        """Offset of the buffer control word."""
        return _BUFFER_CONTROL + 8 * endpoint + (0 if into_host else 4)

    @staticmethod
    def _bit(endpoint: int, into_host: bool) -> int:
        """Number in BUFF_STATUS and EP_ABORT."""
        return 2 * endpoint + (0 if into_host else 1)

    def _word(self, place: int) -> int:
        return int(self.dpram.registers.values[place >> 2])

    def _half(self, place: int, word: int) -> int:
        return word >> 16 if place in self._second else word & 0xFFFF

    def _endpoint_control(self, endpoint: int, into_host: bool) -> int:
        if endpoint == 0:
            return _EACH_BUFFER if self.value(_SIE_CTRL) & _EP0_INT_1BUF else 0
        return self._word(8 * endpoint + (0 if into_host else 4))

    def _buffer(self, endpoint: int, into_host: bool, place: int) -> int:
        first = _EP0_BUFFER if endpoint == 0 else self._endpoint_control(endpoint, into_host) & _BUFFER_ADDRESS
        return first + (SECOND_BUFFER if place in self._second else 0)

    def _complete(self, endpoint: int, into_host: bool, place: int, length: int) -> None:
        second = place in self._second
        half = self._half(place, self._word(place)) & ~(_AVAILABLE | _FULL | _LENGTH)
        half |= length | (0 if into_host else _FULL)
        word = self._word(place)
        word = word & 0xFFFF | half << 16 if second else word & 0xFFFF_0000 | half
        self.dpram.registers.values[place >> 2] = word
        control = self._endpoint_control(endpoint, into_host)
        if control & _DOUBLE:
            self._second ^= {place}
        if control & _EACH_BUFFER or (control & _BOTH_BUFFERS and second):
            self._done |= 1 << self._bit(endpoint, into_host)
            self._raise()

    def _buffer_control_written(self, place: int) -> None:
        if self._word(place) & _SELECT_FIRST:
            self._second.discard(place)
        self.on_change()

    # --- registers ---------------------------------------------------------------------------------------------------

    def _raw(self) -> int:
        raw = self.value(_INTF)
        raw |= _INT_BUFF_STATUS if self._done else 0
        raw |= _INT_BUS_RESET if self._status & _STATUS_BUS_RESET else 0
        raw |= _INT_SETUP if self._status & _STATUS_SETUP else 0
        raw |= _INT_SOF if self._sof else 0
        return raw | (_INT_ABORT_DONE if self._aborted else 0)

    def _raise(self) -> None:
        """What registers say follows from the state: keep them up to date, so that reading takes no call."""
        raw, enabled = self._raw(), self.value(_INTE)
        self.set(_SIE_STATUS, self._status | _STATUS_VBUS)
        self.set(_BUFF_STATUS, self._done)
        self.set(_EP_ABORT_DONE, self._aborted)
        self.set(_INTR, raw)
        self.set(_INTS, raw & enabled)
        self._interrupt(bool(raw & enabled))

    def read(self, offset: int) -> int:
        if offset == _SOF_RD:
            self._sof = False
            self._raise()
            return self._frame() & 0x7FF
        return self.value(offset)

    def write(self, offset: int, value: int, alias: Alias) -> None:
        if offset == _SIE_STATUS:  # cleared by writing ones, through the plain view or the CLR alias
            self._status &= ~(value & _STATUS_CLEARABLE)
        elif offset == _BUFF_STATUS:
            self._done &= ~value
        elif offset == _EP_ABORT_DONE:
            self._aborted &= ~value
        elif offset not in (_SOF_RD, _BUFF_CPU_SHOULD_HANDLE, _INTR, _INTS):
            before = self.attached
            new = self.keep(offset, value, alias)
            if offset == _MAIN_CTRL and new & _MAIN_HOST and new & _MAIN_ENABLE:
                raise FirmwareError("the firmware uses USB host mode, which is not modelled")
            if offset == _EP_ABORT:
                self._aborted |= new
            if self.attached != before or offset in (_ADDR_ENDP, _INTE, _EP_ABORT, _EP_STALL_ARM):
                self.on_change()
        self._raise()
