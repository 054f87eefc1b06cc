"""The probe firmware, built once for all sessions, and machines that run it."""

import fcntl
import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.emulation.bench import Bench, Probe
from toolkit.building.pico_sdk import fetch_pico_sdk
from toolkit.building.tools import ARM_GCC, CMAKE, NINJA, require, version
from toolkit.building.uf2 import write_uf2
from toolkit.resources import cache_folder

FIRMWARE = Path(__file__).parent / "firmware"


@pytest.fixture(scope="session")
def probe():
    """The firmware of `firmware/`: ELF and UF2, from the cache where its sources and tools are the same."""
    sdk = fetch_pico_sdk()
    digest = hashlib.sha256(f"{sdk.version} {version(require(ARM_GCC))}".encode())
    for path in sorted(FIRMWARE.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    folder = cache_folder() / "probe" / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    elf, uf2 = folder / "probe.elf", folder / "probe.uf2"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker of the same session may be building it
        if not uf2.is_file():
            _build(sdk.path, folder)
            write_uf2(elf, uf2)
    return Probe(elf, uf2)


def _build(sdk, folder):
    definitions = {
        "PICO_SDK_PATH": sdk,
        "PICO_BOARD": "pico2",
        "PICO_PLATFORM": "rp2350-arm-s",
        "PICO_NO_PICOTOOL": 1,
        "PICO_TOOLCHAIN_PATH": require(ARM_GCC).parent,
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_MAKE_PROGRAM": require(NINJA),
    }
    words = [f"-D{name}={value}" for name, value in definitions.items()]
    for command in (
        [require(CMAKE), "-G", "Ninja", "-S", FIRMWARE, "-B", folder, *words],
        [require(CMAKE), "--build", folder, "-j", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.fixture(scope="module")
def bench(probe):
    """One machine for the tests of a module."""
    return Bench(probe)
