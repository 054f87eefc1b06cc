"""The chip: what firmware sees of time, interrupts, flash and pins, and how instructions are counted."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import toolkit.emulation.rp2350 as package
from tests.emulation.bench import UNIQUE_ID, Bench
from toolkit.building.tools import HOST_GCC, require
from toolkit.emulation import rp2350
from toolkit.errors import ToolError

M32 = 0xFFFF_FFFF


def test_the_sdk_finds_its_clocks_and_the_chips_id(bench):
    assert bench.ask("identity") == f"identity {UNIQUE_ID:016X} 150000000 0"


def test_a_timer_interrupts_on_time(bench):
    _, ticks, microseconds = bench.ask("timer 25").split()
    assert int(ticks) == 25
    assert 24_990 <= int(microseconds) <= 25_100


def test_sleeping_takes_its_time_and_few_instructions(bench):
    before = bench.machine.instructions
    _, microseconds = bench.ask("sleep 200").split()
    assert 200_000 <= int(microseconds) <= 200_050
    assert bench.machine.instructions - before < 3_000_000  # 200 ms would be 30 million


def test_flash_is_erased_and_programmed(bench):
    assert bench.ask("flash") == "flash 1 1"
    assert bench.machine.engine.memory(0x10300000, 4) == bytes((0x5A, 0x5B, 0x58, 0x59))


def test_a_pin_reads_back(bench):
    assert bench.ask("gpio") == "gpio 1 0"


def test_doubles_are_printed(bench):
    # The SDK's own printf writes %g of large numbers in this way.
    assert bench.ask("print") == "print 3.141593 10.000000e+99 -2.500000e-07"


def test_results_are_those_of_the_computation(bench):
    state = 0x12345678
    for i in range(5000):
        state ^= state << 13 & M32
        shifted = state ^ state >> 17
        state = (shifted ^ shifted << 5) & M32
        if state & 1:
            state = state + i & M32
    assert bench.ask("compute 5000") == f"compute {state:08x}"
    assert bench.ask("ram 5000") == f"ram {state:08x}"


def count(bench, rounds):
    return int(bench.ask(f"count {rounds}").split()[1])


def test_instructions_are_counted_exactly(bench):
    """The loop has nine instructions, of which one is skipped now and then."""
    assert count(bench, 2000) - count(bench, 1000) == 9 * 1000
    assert count(bench, 1_000_000) - count(bench, 2000) == 9 * 998_000


def test_the_count_is_the_same_in_every_run_and_with_both_hooks(probe, bench):
    counts = [count(bench, 3000), count(bench, 3000), count(Bench(probe), 3000)]
    in_python = Bench(probe, hook="python")
    counts += [count(in_python, 3000), count(in_python, 3000)]
    assert counts == [counts[0]] * 5
    assert 27_000 <= counts[0] <= 27_020


def signed(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def halves(value):
    return signed(value, 16), signed(value >> 16, 16)


def saturated(value, bits):
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, value))


def dsp_results(a, b, c):
    """What Armv8-M's DSP extension specifies (Architecture Reference Manual, C2.4), in the firmware's order."""
    (al, ah), (bl, bh) = halves(a), halves(b)
    lanes = [(a >> 8 * i & 0xFF, b >> 8 * i & 0xFF) for i in range(4)]
    rotated = b >> 8 | b << 24
    extended = (al + signed(rotated, 8) & 0xFFFF) | (ah + signed(rotated >> 16, 8) & 0xFFFF) << 16
    accumulator = signed(a << 32 | c, 64)
    return [
        al * bl + ah * bh + signed(c) & M32,
        al * bh + ah * bl & M32,
        saturated(al + bl, 16) & 0xFFFF | (saturated(ah + bh, 16) & 0xFFFF) << 16,
        extended,
        saturated(signed(a) >> 5, 8) & M32,
        signed(a) * signed(b) + 0x8000_0000 >> 32 & M32,
        sum((x if x + y > 0xFF else y) << 8 * i for i, (x, y) in enumerate(lanes)),
        sum(abs(x - y) for x, y in lanes),
        accumulator + al * bl + ah * bh & (1 << 64) - 1,
    ]


def test_dsp_instructions(bench):
    chosen = random.Random(7)
    edges = (0, 1, M32, 0x8000_0000, 0x7FFF_FFFF, 0x8000_8000, 0x7FFF_7FFF, 0x8080_7F7F, 0xFFFF_0000, 0x80)
    cases = [(edge, other, third) for edge in edges for other, third in ((0x8000_7FFF, 0x7FFF_FFFF), (M32, 0))]
    cases += [tuple(chosen.getrandbits(32) for _ in range(3)) for _ in range(30)]
    for a, b, c in cases:
        expected = dsp_results(a, b, c)
        words = [f"{value:08x}" for value in expected[:8]] + [f"{expected[8]:016x}"]
        assert bench.ask(f"dsp {a:x} {b:x} {c:x}") == f"dsp {' '.join(words)}", (hex(a), hex(b), hex(c))


@pytest.mark.parametrize("hook", ["auto", "python"])
def test_a_firmware_that_waits_is_recognised(probe, hook):
    """Waiting for input without reading any register: the loop changes nothing, so it may rest."""
    bench = Bench(probe, hook)
    for _ in range(20):
        bench.step()
    assert any(bench.machine.probe() for _ in range(10))


def test_a_computation_is_not_mistaken_for_waiting(probe):
    bench = Bench(probe)
    bench.host.send(b"compute 20000000\n")
    for _ in range(20):
        bench.step()
    assert not any(bench.machine.probe() for _ in range(20))


def test_the_watchdog_resets_the_chip(probe):
    bench = Bench(probe)
    bench.host.send(b"watchdog 50\n")
    began = bench.machine.timeline.now_us
    while bench.machine.reboot is None:
        bench.step()
    assert bench.machine.reboot.reason == 1
    assert bench.machine.timeline.now_us - began >= 50_000


def test_a_service_call_from_a_stack_of_its_own(bench):
    """SVC 37 with PSP: its number, r0 + r1 + r4 afterwards (40 + 2 + 4), and EXC_RETURN (thread, PSP, no FPU frame)."""
    assert bench.ask("svc") == "svc 37 46 fffffffd"


def test_masks_hold_an_interrupt_back_and_let_it_go_at_once(bench):
    """PRIMASK, then BASEPRI: what the handler had done before and after the mask was lifted."""
    assert bench.ask("mask") == "mask 0 1 0 2"


def test_system_exceptions(bench):
    assert bench.ask("pendsv") == "pendsv 1"
    assert bench.ask("systick") == "systick 10"  # every 100 microseconds, for 1050


def test_an_interrupt_that_uses_the_fpu_does_not_disturb(bench):
    half, step, total, term = np.float32(0.5), np.float32(1.25), np.float32(0), np.float32(1)
    for i in range(1, 40000):
        term = term * half + step
        total = total + term / np.float32(i)
    taken = bench.machine.exceptions_taken
    assert bench.ask("floats") == f"floats {int(total.view(np.uint32)):08x}"
    assert bench.machine.exceptions_taken - taken > 50


def test_uart_bytes_that_nobody_reads_in_time_are_lost(probe):
    """The FIFO holds 32; a line of 60 arrives while the firmware computes for 20 ms."""
    bench = Bench(probe)
    assert bench.ask("both-ports") == "both-ports"
    bench.host.send(b"compute 1000000\n")
    bench.run_until(lambda: bench.host.quiet)
    bench.machine.system.uart.receive(b"a" * 60 + b"\n")
    bench.run_until(lambda: bench.received.count(b"compute"))
    assert bench.machine.system.uart.backlog == 0
    bench.received.clear()
    bench.machine.system.uart.receive(b"\n")
    bench.run_until(lambda: b"unknown" in bench.received and bench.received.endswith(b"\n"))
    assert bench.received.split(b"\r\n")[0] == b"unknown " + b"a" * 32


def test_the_hook_compiles_without_a_warning(tmp_path):
    source = Path(package.__file__).with_name("hook.c")
    compiler = require(HOST_GCC).with_name("cc")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", tmp_path / "hook.so", source], check=True)


def test_without_unicorn_the_package_to_install_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "unicorn", None)
    with pytest.raises(ToolError, match="needs the package unicorn") as error, rp2350.start(tmp_path):
        pass
    assert "pip install 'mcu-deploy[virtual]'" in error.value.hint
