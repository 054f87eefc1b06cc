"""One boot of the chip: executes the firmware, delivers its interrupts, stops it where silicon would fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from toolkit.emulation.rp2350 import chip, exceptions
from toolkit.emulation.rp2350.alignment import condition_holds, decode, instruction_count
from toolkit.emulation.rp2350.bootrom import REBOOT_PC_SP, BootRom, Reboot, RomServices
from toolkit.emulation.rp2350.coprocessors import is_coprocessor_instruction, skip_instruction
from toolkit.emulation.rp2350.engine import PC, SP, CpuError, Engine
from toolkit.emulation.rp2350.exceptions import Exceptions
from toolkit.emulation.rp2350.hook import NEVER, Stop, make_hook
from toolkit.emulation.rp2350.image import BootImage
from toolkit.emulation.rp2350.interrupts import SVCALL
from toolkit.emulation.rp2350.registers import FirmwareError
from toolkit.emulation.rp2350.system import Memories, System

_WFE, _WFI, _YIELD = 2, 3, 1
_PROBE_INSTRUCTIONS = 5000
_SOON = 10_000
_SPURIOUS_WAKE_US = 1000  # WFE may end for no reason; Unicorn does not tell of SEV


class Outcome(Enum):
    """Why `Machine.run` came back."""

    RUNNING = "ran its share"
    ASLEEP = "waits for an interrupt"
    IDLE = "goes round in a loop that only an interrupt or a device can end"
    REBOOT = "is to be reset"
    HALTED = "faulted"


@dataclass(frozen=True, slots=True)
class Wires:
    """What leads out of the chip.

    Attributes:
        transmit: takes a byte that UART0 sends.
        flash_changed: told (offset, bytes) after flash was erased or programmed.
    """

    transmit: Callable[[int], None]
    flash_changed: Callable[[int, int], None] = lambda _offset, _size: None


class Machine:
    """A chip that has just left the boot ROM.

    Args:
        memories: flash, SRAM and scratch registers.
        image: what to start.
        boot: why it boots.
        wires: what leads out of it.
        unique_id: 64 bits.
        hook_kind: `auto`, `c` or `python`.
    """

    def __init__(
        self,
        memories: Memories,
        image: BootImage,
        boot: Reboot,
        wires: Wires,
        *,
        unique_id: int,
        hook_kind: str = "auto",
    ) -> None:
        self._memories = memories
        self._wires = wires
        self.engine = Engine()
        self.hook = make_hook(memories.sram, hook_kind)
        self.system = System(
            self.engine,
            self.hook,
            memories,
            boot,
            transmit=wires.transmit,
            attention=self._attention,
            reset=self.request_reboot,
        )
        self.timeline = self.system.timeline
        self._interrupts = self.system.interrupts
        self._exceptions = Exceptions(self.engine, self._interrupts)
        services = RomServices(self._rom_reboot, self._erase, self._program, unique_id, boot)
        self._rom = BootRom(self.engine, services)
        self.reboot: Reboot | None = None
        self.fault: FirmwareError | None = None
        self._asleep = 0
        self._event = False
        self._prepared: set[tuple[int, int]] = set()
        self._device_blocks: set[tuple[int, int]] = set()
        self._sites: dict[int, bytes] = {}  # code at instructions that are checked when reached, by address
        self._site_numbers: set[int] = set()
        self._unknown = (0, 0)
        self.exceptions_taken = 0
        self._end = 0
        self._alarm: tuple[int, Callable[[], None]] = (NEVER, lambda: None)
        self._exception = 0  # QEMU's number of one that waits to be handled
        self._connect()
        self._start(image, boot)

    def _connect(self) -> None:
        engine = self.engine
        self.hook.attach(engine, self._decode)
        engine.on_exception(self._on_exception)
        engine.on_bad_instruction(self._on_bad_instruction)
        engine.on_bad_access(self._on_bad_access)

    def _start(self, image: BootImage, boot: Reboot) -> None:
        entry, stack = image.entry, image.stack
        if boot.kind == REBOOT_PC_SP:
            entry, stack = boot.parameters
        self.system.control.vector_table = image.vectors
        self.engine.write(SP, stack)
        self.engine.jump(entry)

    # --- running -----------------------------------------------------------------------------------------------------

    @property
    def instructions(self) -> int:
        """Executed since the boot."""
        return self.hook.count

    @property
    def cycles(self) -> int:
        """Virtual time since the boot."""
        return self.timeline.now

    def probe(self) -> bool:
        """Whether the firmware goes round in a loop that changes nothing: registers and memory are as they were.

        Executes some thousand instructions at most.
        """
        before, exceptions_before = self._memories.sram[:], self.exceptions_taken
        self.hook.set_probe(self.engine.read(PC), *self.engine.everything())
        outcome = self.run(_PROBE_INSTRUCTIONS)
        self.hook.set_probe(1, [0] * 19, [0] * 16)
        unchanged = exceptions_before == self.exceptions_taken and before == self._memories.sram[:]
        return outcome is Outcome.IDLE and unchanged

    def run(self, instructions: int) -> Outcome:
        """Execute about so many instructions, or until something else is to be done."""
        self._end = self.hook.count + instructions
        try:
            while True:
                self.timeline.run_due()
                self._raise_kept()
                if self.reboot is not None:
                    self._memories.scratch[:] = self.system.watchdog.scratch
                    return Outcome.REBOOT
                if self._asleep and not self._woken():
                    return Outcome.ASLEEP
                self._take_interrupts()
                if self.hook.count >= self._alarm[0]:
                    _, action = self._alarm
                    self._alarm = (NEVER, action)
                    action()
                elif self.hook.count >= self._end or self.hook.wake:
                    self.hook.wake = 0
                    return Outcome.RUNNING
                elif self.hook.stop == Stop.RECURRED:
                    self.hook.stop = int(Stop.RUNNING)
                    return Outcome.IDLE
                else:
                    self._execute(min(self._end, self._alarm[0]))
        except FirmwareError as fault:
            self._uncount()
            self.fault = fault
            return Outcome.HALTED

    def sleeps_until(self) -> int | None:
        """Cycle at which something will happen while it sleeps; None if nothing will."""
        when = self.timeline.next()
        if self._asleep == _WFE:
            spurious = self.timeline.now + _SPURIOUS_WAKE_US * chip.CYCLES_PER_US
            return spurious if when is None else min(when, spurious)
        return when

    def sleep(self, until: int) -> None:
        """Let time pass while the CPU sleeps."""
        self.timeline.skip_to(until)
        if self._asleep == _WFE:
            self._asleep = 0

    def look_soon(self) -> None:
        """Let `run` come back soon: something for the desk is there."""
        self._end = min(self._end, self.hook.count + _SOON)
        self.hook.deadline = min(self.hook.deadline, self._end)

    def at_count(self, instructions: int, action: Callable[[], None]) -> None:
        """Do something when so many instructions have been executed."""
        self._alarm = (instructions, action)

    def request_reboot(self, reboot: Reboot) -> None:
        """Reset the chip as soon as the CPU comes to the end of a block."""
        if self.reboot is None:
            self.reboot = reboot
        self.hook.deadline = 0

    def _woken(self) -> bool:
        if self._interrupts.waiting() is not None:
            self._asleep = 0
        return not self._asleep

    def _attention(self) -> None:
        if self._interrupts.waiting() is not None:
            self.hook.deadline = 0

    def _take_interrupts(self) -> None:
        while (exception := self._interrupts.waiting()) is not None:
            if self._exceptions.masked(exception):
                self.hook.priority = self._interrupts.priority(exception)
                self.hook.watch = 1
                return
            self._exceptions.enter(exception, self.system.control.vector_table)
            self.exceptions_taken += 1
            self._event = True
        self.hook.watch = 0

    def _execute(self, end: int) -> None:
        """Run until something stops the CPU, and see what it was."""
        self.timeline.limit(end)
        self.hook.stop = int(Stop.RUNNING)
        failed = None
        try:
            self.engine.run()
        except CpuError as error:
            failed = error
        self._raise_kept()
        why = self.hook.stop
        if self._exception:
            number, self._exception = self._exception, 0
            self._handle_exception(number)
        elif why == Stop.UNKNOWN:
            self._prepare()
        elif why == Stop.DEVICE:
            self._learn_device_block()
        elif why == Stop.MISALIGNED:
            self._judge_alignment()
        elif failed is not None:
            self._judge_failure(failed)
        elif why == Stop.RUNNING and self._hint() == _WFI:
            self._asleep = _WFI

    def _raise_kept(self) -> None:
        """What device code raised while the CPU was in it."""
        raised, self.system.raised = self.system.raised, None
        if raised is not None:
            raise raised

    def _judge_failure(self, error: CpuError) -> None:
        hint = self._hint()
        if hint == _WFE:
            self._asleep = 0 if self._event else _WFE
            self._event = False
        elif hint != _YIELD:
            raise self._instruction_fault(error)

    def _hint(self) -> int:
        """The hint instruction the CPU has just executed: its number, 0 for none."""
        pc = self.engine.read(PC)
        if pc != self.hook.block + self.hook.size:
            return 0
        code = self.engine.memory(pc - 4, 4) or b"\0\0\0\0"
        first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:], "little")
        if second & 0xFF0F == 0xBF00:
            return second >> 4 & 0xF
        return second & 0xFF if first == 0xF3AF and second & 0xFF00 == 0x8000 else 0

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _decode(self, address: int, size: int) -> int:
        """Called by the hook for a block it does not know: the record's number, 0 to stop before it."""
        key = self._unknown = (address, size)
        try:
            code = self.engine.memory(address, size) or b""
            device = key in self._device_blocks
            decoded = decode(code, address, device=device, constant=self._constant)
            if decoded.sites and key not in self._prepared:
                return 0
            return self.hook.add_record(address, code, decoded, device=device)
        except Exception as error:  # Unicorn's callbacks cannot raise
            self.system.raised = error
            return 0

    def _constant(self, address: int) -> int | None:
        """A literal: it changes no more often than the code it belongs to."""
        for base, memory in ((chip.XIP_BASE, self._memories.flash), (chip.SRAM_BASE, self._memories.sram)):
            offset = address - base
            if 0 <= offset <= len(memory) - 4:
                return int.from_bytes(memory[offset : offset + 4], "little")
        return None

    def _prepare(self) -> None:
        """The next block has addresses that are known only at the instruction: check them there."""
        self._add_sites(*self._unknown, device=self._unknown in self._device_blocks)

    def _add_sites(self, address: int, size: int, *, device: bool) -> None:
        code = self.engine.memory(address, size) or b""
        decoded = decode(code, address, device=device, constant=self._constant)
        for place, check in decoded.sites:
            instruction = code[place - address : place - address + 4]
            if self._sites.get(place) != instruction:
                self._sites[place] = instruction
                self._site_numbers.add(self.hook.add_site(self.engine, place, check))
        self._prepared.add((address, size))
        if decoded.sites:
            self.engine.forget_code(address)

    def _learn_device_block(self) -> None:
        """A block reaches a device for the first time: from now on its single accesses are checked too."""
        pc, block, size = self.engine.read(PC), self.hook.block, self.hook.size
        self._uncount()
        rest = block + size - pc
        for key in ((block, size), (pc, rest)):
            self._device_blocks.add(key)
            self._add_sites(*key, device=True)
            code = self.engine.memory(*key) or b""
            decoded = decode(code, key[0], device=True, constant=self._constant)
            self.hook.add_record(key[0], code, decoded, device=True)

    def _judge_alignment(self) -> None:
        """A check failed: go to the instruction, and see whether it would really execute with that address."""
        number = self.hook.culprit
        place, check = self.hook.check(number)
        pc = self.engine.read(PC)
        if number in self._site_numbers:
            self._uncount()
        elif pc != place:
            self.engine.forget_code(pc)  # so that the block is translated anew and ends before the instruction
            self.hook.stop = int(Stop.RUNNING)
            self.engine.run(until=place)
            self._raise_kept()
            if self.engine.read(PC) != place:
                return  # something else came first; the check will be made again
        if self._executes() and self._unaligned(place, device=check.device):
            kind = "device access" if check.device else "access"
            raise FirmwareError(f"unaligned {kind}, which the Cortex-M33 answers with a UsageFault")
        self.hook.pardon = self.hook.pardon_site = place

    def _unaligned(self, place: int, *, device: bool) -> bool:
        """Whether the instruction at the program counter makes an unaligned access, with the registers as they are."""
        code = self.engine.memory(place, 4) or b"\0\0"
        length = 4 if code[1] >= 0xE8 else 2
        decoded = decode(code[:length], place, device=device, constant=self._constant)
        made = [check for _, check in (*decoded.checks, *decoded.sites)]
        return any(check.fails(self.engine.read, self.engine.flags) for check in made)

    def _executes(self) -> bool:
        """Whether the IT block lets the next instruction execute."""
        xpsr = self.engine.xpsr
        state = (xpsr >> 10 & 0x3F) << 2 | xpsr >> 25 & 3
        return state & 0xF == 0 or condition_holds(state >> 4, xpsr)

    def _uncount(self) -> None:
        """The CPU stopped inside a block that was counted when it began: take back what was not executed."""
        pc, end = self.engine.read(PC), self.hook.block + self.hook.size
        if self.hook.block <= pc < end:
            self.hook.count -= instruction_count(self.engine.memory(pc, end - pc) or b"")
            self.hook.size = pc - self.hook.block

    # --- what Unicorn hands over -------------------------------------------------------------------------------------

    def _on_exception(self, number: int) -> None:
        # Unicorn loses the program counter at later stops when a hook has written it: stop, and write it then.
        self._exception = number
        self.engine.stop()

    def _handle_exception(self, number: int) -> None:
        pc = self.engine.read(PC)
        if number == exceptions.QEMU_NO_COPROCESSOR:
            self._run_coprocessors(pc)
        elif number == exceptions.QEMU_BREAKPOINT:
            if not (pc < chip.ROM_BYTES and self._rom.call(pc)):
                raise FirmwareError("a breakpoint, with which firmware gives up (panic, hard_assert, exit)")
        elif number == exceptions.QEMU_EXCEPTION_EXIT:
            self._exceptions.leave(pc | 1)
            self._event = True
            if self.system.control.sleep_on_exit and not self._interrupts.active:
                self._asleep = _WFI
        elif number == exceptions.QEMU_SVC:
            self._interrupts.set_pending(SVCALL)
        else:
            raise FirmwareError(_FAULTS.get(number, f"the CPU's exception {number}"))

    def _run_coprocessors(self, pc: int) -> None:
        """Carry out a coprocessor instruction, and those that follow it immediately: they come in sequences."""
        engine, system = self.engine, self.system
        counted = 0  # the first one was counted with its block
        while True:
            code = engine.memory(pc, 4) or b"\0\0\0\0"
            first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:], "little")
            if counted and not is_coprocessor_instruction(first, second):
                break
            system.coprocessors.execute(first, second, system.control.coprocessors)
            skip_instruction(engine, 4)
            self.hook.count += counted
            if engine.xpsr & exceptions.XPSR_IT:
                break
            counted = 1
            pc += 4

    def _on_bad_instruction(self) -> bool:
        return False  # the CPU stops; `_judge_failure` looks at what it was

    def _instruction_fault(self, error: CpuError) -> FirmwareError:
        pc = self.engine.read(PC)
        if not self.engine.xpsr >> 24 & 1:
            return FirmwareError(f"a branch to the even address {pc:#010x}: a Cortex-M has no Arm state")
        code = self.engine.memory(pc, 4)
        if code is None:
            return FirmwareError(str(error), pc)
        return FirmwareError(f"an undefined instruction: {code[1]:02x}{code[0]:02x} {code[3]:02x}{code[2]:02x}")

    def _on_bad_access(self, kind: int, address: int, size: int, value: int) -> bool:
        name = self.engine.access_name(kind)
        what = f"{name} {chip.describe(address)}"
        if "write" in name:
            what += f", value {value & (1 << 8 * size) - 1:#x}"
        self.system.raised = self.system.raised or FirmwareError(f"bad access, {size} bytes: {what}", address)
        return False

    # --- what the boot ROM does --------------------------------------------------------------------------------------

    def _rom_reboot(self, reboot: Reboot, delay_ms: int, no_return: bool) -> None:
        if no_return:
            self._asleep = 0
            self.request_reboot(reboot)
        else:
            self.timeline.after_us("ROM reboot", delay_ms * 1000, lambda: self.request_reboot(reboot))

    def _erase(self, offset: int, size: int) -> None:
        self._memories.flash[offset : offset + size] = b"\xff" * size
        self._flash_changed(offset, size)

    def _program(self, offset: int, data: bytes) -> None:
        old = self._memories.flash[offset : offset + len(data)]
        self._memories.flash[offset : offset + len(data)] = bytes(a & b for a, b in zip(old, data, strict=True))
        self._flash_changed(offset, len(data))

    def _flash_changed(self, offset: int, size: int) -> None:
        self.engine.forget_code()
        self.hook.forget()
        self._wires.flash_changed(offset, size)


_FAULTS = {
    exceptions.QEMU_STACK_LIMIT: "the stack pointer went below its limit (MSPLIM): stack overflow",
    exceptions.QEMU_DATA_ABORT: "unaligned access, which the Cortex-M33 answers with a UsageFault",
    exceptions.QEMU_PREFETCH_ABORT: "execution where nothing may be executed",
}
