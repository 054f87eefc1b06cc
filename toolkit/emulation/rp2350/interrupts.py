"""Which exception is to be taken next: the NVIC and the system exceptions (Armv8-M, B3.9 to B3.13)."""

from __future__ import annotations

from collections.abc import Callable

SVCALL = 11
PENDSV = 14
SYSTICK = 15
FIRST_IRQ = 16
_EXCEPTIONS = FIRST_IRQ + 52
_IRQ_MASK = (1 << 52) - 1
_PRIORITY_BITS = 0xF0  # the RP2350 has sixteen priorities
_THREAD = 0x100  # lower than every exception's priority


class Interrupts:
    """Pending, enabled and active exceptions of core 0, all Secure.

    Args:
        changed: called when an exception may have become deliverable.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.enabled = 0  # by IRQ number
        self._pending = 0  # by exception number
        self._lines = 0  # by IRQ number
        self._priority = bytearray(_EXCEPTIONS + 12)
        self.active: list[int] = []

    # --- what devices do ---------------------------------------------------------------------------------------------

    def line(self, irq: int) -> Callable[[bool], None]:
        """The setter of one interrupt line."""
        bit = 1 << irq

        def set_level(high: bool) -> None:
            if high and not self._lines & bit:
                self._lines |= bit
                self.set_pending(FIRST_IRQ + irq)
            elif not high:
                self._lines &= ~bit

        return set_level

    # --- what the firmware does --------------------------------------------------------------------------------------

    def enable(self, mask: int, on: bool) -> None:
        self.enabled = (self.enabled | mask if on else self.enabled & ~mask) & _IRQ_MASK
        self._changed()

    def pend_irqs(self, mask: int, on: bool) -> None:
        """ISPR and ICPR: a line that is still high pends its interrupt again."""
        mask = (mask & _IRQ_MASK) << FIRST_IRQ
        self._pending = self._pending | mask if on else self._pending & ~mask | self._lines << FIRST_IRQ & mask
        self._changed()

    def set_pending(self, exception: int, pending: bool = True) -> None:
        if pending:
            self._pending |= 1 << exception
            self._changed()
        else:
            self._pending &= ~(1 << exception)

    def priorities(self, first: int) -> int:
        """Four priorities, as their registers hold them."""
        return int.from_bytes(self._priority[first : first + 4], "little")

    def set_priorities(self, first: int, word: int) -> None:
        self._priority[first : first + 4] = (word & 0x0101_0101 * _PRIORITY_BITS).to_bytes(4, "little")
        self._changed()

    @property
    def pending_irqs(self) -> int:
        return self._pending >> FIRST_IRQ

    @property
    def active_irqs(self) -> int:
        return sum(1 << number - FIRST_IRQ for number in self.active if number >= FIRST_IRQ)

    def control_state(self) -> int:
        """ICSR."""
        best = self._best()
        state = self.active[-1] if self.active else 0
        state |= (best or 0) << 12 | bool(self.pending_irqs) << 22 | (len(self.active) == 1) << 11
        return state | (self._pending >> PENDSV & 1) << 28 | (self._pending >> SYSTICK & 1) << 26

    # --- what the CPU does -------------------------------------------------------------------------------------------

    def _best(self) -> int | None:
        """The pending and enabled exception of highest priority; the lower number first among equals."""
        candidates = self._pending & (self.enabled << FIRST_IRQ | (1 << FIRST_IRQ) - 1)
        best: int | None = None
        while candidates:
            number = (candidates & -candidates).bit_length() - 1
            candidates &= candidates - 1
            if best is None or self._priority[number] < self._priority[best]:
                best = number
        return best

    def execution_priority(self) -> int:
        """Of what is running, masks aside."""
        return min((self._priority[number] for number in self.active), default=_THREAD)

    def waiting(self) -> int | None:
        """The exception that would be taken if no mask forbade it."""
        best = self._best()
        return best if best is not None and self._priority[best] < self.execution_priority() else None

    def priority(self, exception: int) -> int:
        return self._priority[exception]

    def enter(self, exception: int) -> None:
        self._pending &= ~(1 << exception)
        self.active.append(exception)

    def leave(self, exception: int) -> None:
        """An exception's handler returned; a line that is still high pends it again."""
        if exception in self.active:
            self.active.remove(exception)
        if exception >= FIRST_IRQ and self._lines >> exception - FIRST_IRQ & 1:
            self._pending |= 1 << exception
