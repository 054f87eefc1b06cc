"""The programs that the toolkit calls: where each is found, which version, and how to get it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ToolError


@dataclass(frozen=True, slots=True)
class Tool:
    """A program.

    Attributes:
        name: what it is called on PATH.
        purpose: what it is for, in a few words.
        package: Debian's package that brings it.
        hint: how to get it elsewhere.
    """

    name: str
    purpose: str
    package: str
    hint: str = ""


CMAKE = Tool("cmake", "configures projects", "cmake", "pip install cmake")
NINJA = Tool("ninja", "builds projects", "ninja-build", "pip install ninja")
ARM_GCC = Tool(
    "arm-none-eabi-g++",
    "compiles for Cortex-M",
    "gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib",
    "the Arm GNU Toolchain from Arm's developer site, its bin folder on PATH or in ARM_TOOLCHAIN_BIN",
)
QEMU = Tool("qemu-system-arm", "runs virtual boards", "qemu-system-arm", "QEMU 7.2 or newer")
HOST_GCC = Tool("c++", "compiles for this computer (board `host`)", "g++", "any C and C++ compiler")

TOOLS = (CMAKE, NINJA, ARM_GCC, QEMU, HOST_GCC)


def find(tool: Tool) -> Path | None:
    """Where a tool is, None when it is nowhere.

    Looked for beside the Python interpreter (cmake and ninja come as packages), in ARM_TOOLCHAIN_BIN, and on PATH.
    """
    folders = [str(Path(sys.executable).parent)]
    if tool is ARM_GCC and (folder := os.environ.get("ARM_TOOLCHAIN_BIN")):
        folders.insert(0, folder)
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    found = shutil.which(tool.name, path=path)
    return Path(found) if found else None


def require(tool: Tool) -> Path:
    """Where a tool is.

    Raises:
        ToolError: it is nowhere; the hint says how to get it.
    """
    found = find(tool)
    if found is None:
        elsewhere = f"; elsewhere: {tool.hint}" if tool.hint else ""
        raise ToolError(
            f"{tool.name} is not installed; it {tool.purpose}",
            hint=f"On Debian or Ubuntu: sudo apt-get install {tool.package}{elsewhere}.",
        )
    return found


def version(path: Path, option: str = "--version") -> str:
    """The version a tool says of itself when it is given an option, empty when it says none."""
    try:
        done = subprocess.run([path, option], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
    return match.group(0) if match else ""
