"""Where the kernels are tried: the host under sanitizers, and four cores under QEMU."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from .calls import Call, Result, decode_results, encode_calls

DRIVER = Path(__file__).parent / "driver"


@dataclass(frozen=True)
class Machine:
    """A build of the driver. `board` is QEMU's, empty for the host; then addresses of its memories and its timer."""

    name: str
    board: str = ""
    flags: str = ""
    code: int = 0
    data: int = 0
    timer: int = 0


HOST = Machine("host")
M33 = Machine(
    "m33", "mps2-an505", "-mcpu=cortex-m33 -mfpu=fpv5-sp-d16 -mfloat-abi=hard", 0x10000000, 0x38000000, 0x50000000
)
M55 = Machine("m55", "mps3-an547", "-mcpu=cortex-m55 -mfloat-abi=hard", 0x10000000, 0x70000000, 0x58000000)
M3 = Machine("m3", "mps2-an385", "-mcpu=cortex-m3", 0x0, 0x20000000, 0x40000000)
# No board of QEMU's has an M0+ and memory enough; its instructions are a subset of the M3's.
M0 = Machine("m0plus", "mps2-an385", "-mcpu=cortex-m0plus", 0x0, 0x20000000, 0x40000000)
MACHINES = (HOST, M33, M55, M3, M0)

_TICK_NS = 50  # of the M33 board's timer
_INSTRUCTION_NS = 64  # of virtual time when counting; longer than a tick, so that counts are exact


@dataclass(frozen=True)
class Driver:
    """The driver as built for one machine, in a folder of its own."""

    machine: Machine
    folder: Path

    def run(self, calls: list[Call], *, count: bool = False) -> list[Result]:
        """Makes the calls; with `count`, time passes with the instructions executed (see `instructions`)."""
        (self.folder / "cases.bin").write_bytes(encode_calls(calls))
        subprocess.run(self._command(count), cwd=self.folder, check=True, timeout=300)
        return decode_results((self.folder / "results.bin").read_bytes(), calls)

    def instructions(self, result: Result) -> int:
        """How many instructions a counted call took on the M33 board."""
        return result.ticks * _TICK_NS // _INSTRUCTION_NS

    def _command(self, count: bool) -> list[str]:
        if not self.machine.board:
            return ["./driver"]
        quiet = ["-nographic", "-monitor", "none", "-serial", "none"]
        semihosting = ["-semihosting-config", "enable=on,target=native"]
        icount = ["-icount", f"shift={_INSTRUCTION_NS.bit_length() - 1}"] if count else []
        return ["qemu-system-arm", "-M", self.machine.board, *quiet, *semihosting, *icount, "-kernel", "driver"]


def build_driver(machine: Machine, folder: Path) -> Driver:
    """Configures and compiles the library and the driver."""
    options = ["-DHOST_SANITIZERS=ON"]
    if machine.board:
        options = [
            "-DCMAKE_SYSTEM_NAME=Generic",
            "-DCMAKE_SYSTEM_PROCESSOR=arm",
            "-DCMAKE_C_COMPILER=arm-none-eabi-gcc",
            "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
            f"-DCMAKE_C_FLAGS=-mthumb {machine.flags}",
            f"-DMPS2_CODE={machine.code:#x}",
            f"-DMPS2_DATA={machine.data:#x}",
            f"-DMPS2_TIMER={machine.timer:#x}",
        ]
    for command in (
        ["cmake", "-G", "Ninja", "-S", str(DRIVER), "-B", str(folder), *options],
        ["cmake", "--build", str(folder), "--parallel", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return Driver(machine, folder)
