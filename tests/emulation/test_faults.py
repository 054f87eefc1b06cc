"""What silicon answers with a fault stops the board, and the report says what, where and by which way."""

import pytest

from tests.emulation.bench import Bench

# Command, what the report must say, and the function that did it.
MISTAKES = [
    ("load", "read of 0x30000000 (nothing is mapped there)", "load_from"),
    ("store", "write to 0x30000000 (nothing is mapped there), value 0x1", "store_to"),
    ("flash-store", "write to read-only 0x10001000 (XIP flash+0x1000), value 0x1", "store_to"),
    ("block", "read of 0x400a0000 (ADC+0x0, which is not modelled)", "load_from"),
    ("execute", "execution at 0x30000000", "misbehave"),
    ("device", "unaligned device access", "load_from"),
    ("ldrd", "unaligned access", "unaligned_pair"),
    ("strd", "unaligned access", "unaligned_pair_store"),
    ("ldm", "unaligned access", "unaligned_multiple"),
    ("stm", "unaligned access", "unaligned_multiple_store"),
    ("vldr", "unaligned access", "unaligned_float"),
    ("vldm", "unaligned access", "unaligned_floats"),
    ("ldrex", "unaligned access", "unaligned_exclusive"),
    ("computed", "unaligned access", "unaligned_computed"),
    ("undefined", "an undefined instruction: de07", "misbehave"),
    ("panic", "a breakpoint, with which firmware gives up", "panic"),
    ("core1", "core 1, which is not modelled", "store_to"),
]


@pytest.mark.parametrize(("command", "said", "function"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_a_mistake_is_reported(probe, command, said, function):
    report = Bench(probe).halt(f"fault {command}")
    lines = report.splitlines()
    assert said in report
    assert lines[0].startswith("The firmware was stopped: ")
    at = next(line for line in lines if line.startswith("At "))
    trace = lines[lines.index(next(line for line in lines if line.startswith("Return addresses"))) :]
    assert function in at or any(function in line for line in trace), report
    assert any("main+" in line for line in trace), report
    assert "sp 2008" in report


def test_the_program_counter_and_registers_are_those_of_the_mistake(probe):
    bench = Bench(probe)
    report = bench.halt("fault store")
    assert " store_to+0x2," in report  # movs r3, #1; then the store
    assert "r0 30000000" in report
    assert "code there: 6003" in report


@pytest.mark.parametrize("command", ["computed", "ldm", "device"])
def test_both_hooks_count_the_same_up_to_a_fault(probe, command):
    """From the boot to the instruction that is refused; which is not counted."""
    counts, reports = [], []
    for hook in ("auto", "python"):
        bench = Bench(probe, hook)
        reports.append(bench.halt(f"fault {command}"))
        counts.append(bench.machine.instructions)
    assert counts[0] == counts[1]
    assert reports[0] == reports[1]


def test_an_instruction_that_is_skipped_is_no_mistake(probe):
    bench = Bench(probe)
    for _ in range(3):
        assert bench.ask("fault skipped") == "skipped"


def test_an_endless_loop_is_not_a_fault(probe):
    bench = Bench(probe)
    bench.host.send(b"fault masked-loop\n")
    for _ in range(200):
        bench.step()
    assert bench.machine.fault is None
    bench.received.clear()
    bench.host.send(b"echo lost\n")
    for _ in range(200):
        bench.step()
    assert bench.received == b""
