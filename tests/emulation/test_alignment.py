"""Reading blocks: instructions are counted as the assembler laid them out; checks say what addresses are made of."""

import re
import subprocess

import pytest

from toolkit.building.tools import ARM_GCC, require
from toolkit.emulation.rp2350.alignment import ALWAYS, condition_holds, decode, instruction_count


def assembled(tmp_path, text):
    source, target, binary = (tmp_path / name for name in ("code.s", "code.o", "code.bin"))
    source.write_text(f".syntax unified\n.thumb\n{text}\n")
    folder = require(ARM_GCC).parent
    options = ["-mcpu=cortex-m33", "-mfpu=fpv5-sp-d16"]
    subprocess.run([folder / "arm-none-eabi-as", *options, "-o", target, source], check=True)
    subprocess.run([folder / "arm-none-eabi-objcopy", "-O", "binary", target, binary], check=True)
    return binary.read_bytes()


def read(tmp_path, text, device=False):
    return decode(assembled(tmp_path, text), 0x10000000, device=device, constant=lambda _: 0x40000000)


def test_every_function_of_a_firmware_is_counted_as_the_disassembler_does(probe):
    listing = subprocess.run(
        [require(ARM_GCC).parent / "arm-none-eabi-objdump", "-d", "-j", ".text", probe.elf],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    instructions = 0
    for line in listing.splitlines():
        match = re.match(r"\s*[0-9a-f]+:\s((?:[0-9a-f]{4}\s)+)\s*[a-z]", line)
        if match:
            halves = match[1].split()
            code = b"".join(int(half, 16).to_bytes(2, "little") for half in halves)
            assert instruction_count(code) == 1, line
            instructions += 1
    assert instructions > 10_000


# What follows from the registers at the beginning, and where the address lies then: register values, and whether
# the access is refused.
@pytest.mark.parametrize(
    ("text", "registers", "refused"),
    [
        ("ldrd r0, r1, [r2]", {2: 0x20000002}, True),
        ("ldrd r0, r1, [r2]", {2: 0x20000004}, False),
        ("adds r2, #2\nldrd r0, r1, [r2]", {2: 0x20000002}, False),
        ("adds r2, r2, r3\nstrd r0, r1, [r2, #8]", {2: 0x20000001, 3: 2}, True),
        ("adds r2, r2, r3\nstrd r0, r1, [r2, #8]", {2: 0x20000001, 3: 3}, False),
        ("add.w r2, r2, r3, lsl #1\nvldr s0, [r2]", {2: 0x20000000, 3: 1}, True),
        ("add.w r2, r2, r3, lsl #2\nvldr s0, [r2]", {2: 0x20000000, 3: 1}, False),
        ("subs r2, r2, r3\nldmia r2!, {r0, r1}", {2: 0x20000003, 3: 3}, False),
        ("mov r4, r2\nldmia r4!, {r0}\nldmia r4!, {r0}", {2: 0x20000001}, True),
        ("vldmia r2!, {s0-s3}", {2: 0x20000002}, True),
        ("ldrd r0, r1, [r2], #6*4\nldrd r0, r1, [r2]", {2: 0x20000000}, False),
        ("push {r0, r1}\nldrd r0, r1, [sp, #4]\npop {r2, r3}", {13: 0x20001004}, False),
        ("ldr r0, [r2]", {2: 0x20000002}, False),
    ],
)
def test_addresses_that_follow_from_the_registers(tmp_path, text, registers, refused):
    decoded = read(tmp_path, text)
    assert decoded.sites == ()
    fails = [check.fails(lambda number: registers.get(number, 0), lambda: 0) for _, check in decoded.checks]
    assert any(fails) is refused


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("ldr r2, [r3]\nldrd r0, r1, [r2]", 2),
        ("muls r2, r3, r2\nldmia r2!, {r0, r1}", 2),
        ("cmp r0, r1\nit eq\nldrdeq r0, r1, [r2]", 4),
        ("it eq\nmoveq r2, r3\nvldr s0, [r2]", 4),
    ],
)
def test_addresses_that_are_known_only_at_the_instruction(tmp_path, text, place):
    decoded = read(tmp_path, text)
    assert decoded.checks == ()
    assert [address for address, _ in decoded.sites] == [0x10000000 + place]


def test_a_condition_decides(tmp_path):
    ((_, check),) = read(tmp_path, "cmp r0, r1\nit eq\nldrdeq r0, r1, [r2]").sites
    assert check.fails(lambda _: 2, lambda: 1 << 30)
    assert not check.fails(lambda _: 2, lambda: 0)


def test_devices_are_checked_where_the_block_reaches_one(tmp_path):
    text = "ldr r0, [r2, #2]\nstrh r0, [r3, #1]\nldrb r0, [r2, #1]\nldr r1, =0x40000000\nldr r0, [r1, #4]\n.ltorg"
    assert read(tmp_path, text).checks == ()
    checks = [check for _, check in read(tmp_path, text, device=True).checks]
    assert [check.mask for check in checks] == [3, 1]
    word, half = checks
    assert word.fails({2: 0x400B0000}.get, lambda: 0)
    assert not word.fails({2: 0x400B0002}.get, lambda: 0)
    assert not word.fails({2: 0x20000000}.get, lambda: 0)
    assert half.fails({3: 0xD0000000}.get, lambda: 0)


def test_conditions():
    """Armv8-M Architecture Reference Manual, C1.3.1: pairs of opposites, decided by N, Z, C, V."""
    for flags in range(16):
        n, z, c, v = flags >> 3 & 1, flags >> 2 & 1, flags >> 1 & 1, flags & 1
        truths = (z, c, n, v, c and not z, n == v, not z and n == v)
        for pair, truth in enumerate(truths):
            assert condition_holds(2 * pair, flags << 28) is bool(truth)
            assert condition_holds(2 * pair + 1, flags << 28) is not bool(truth)
        assert condition_holds(ALWAYS, flags << 28)
