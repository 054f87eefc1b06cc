"""The Raspberry Pi Pico SDK: where it is, and how it gets into the cache from Debian's packages.

Nothing is cloned from anywhere: Debian's `pico-sdk-source` and `tinyusb-source` are downloaded with apt into a private
folder and unpacked there. Debian has them from release 13 on; older releases take them from there, and nothing of the
system is touched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ToolError
from toolkit.resources import cache_folder

VARIABLE = "PICO_SDK_PATH"
_SYSTEM = Path("/usr/src/pico-sdk")
_PACKAGES = ("pico-sdk-source", "tinyusb-source")
_RELEASE = "trixie"  # the first Debian release that has them
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_HINT = (
    f"Set {VARIABLE} to a checkout of the Pico SDK 2.1 or newer with its TinyUSB submodule; on Debian, "
    "`deploy doctor --fix` fetches it."
)


@dataclass(frozen=True, slots=True)
class PicoSdk:
    """A Pico SDK.

    Attributes:
        path: its folder.
        version: as its own files say it, e.g. `2.1.1`.
    """

    path: Path
    version: str


def find_pico_sdk() -> PicoSdk | None:
    """The SDK of `PICO_SDK_PATH`, of the system's package, or of the cache; None when there is none.

    Raises:
        ToolError: `PICO_SDK_PATH` is set and there is no usable SDK.
    """
    if named := os.environ.get(VARIABLE):
        return _checked(Path(named))
    for folder in (_SYSTEM, _cached()):
        if (folder / "pico_sdk_init.cmake").is_file():
            return _checked(folder)
    return None


def require_pico_sdk() -> PicoSdk:
    """The SDK; raises ToolError with what to do when there is none."""
    found = find_pico_sdk()
    if found is None:
        raise ToolError("the Raspberry Pi Pico SDK is not installed", hint=_HINT)
    return found


def fetch_pico_sdk() -> PicoSdk:
    """The SDK, downloaded into the cache when it is nowhere yet.

    Raises:
        ToolError: apt or dpkg are missing, or the packages cannot be had.
    """
    found = find_pico_sdk()
    if found is not None:
        return found
    target = _cached().parents[2]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
        work = Path(folder)
        root = work / "root"
        for package in _download(work):
            _run(["dpkg-deb", "-x", str(package), str(root)])
        shutil.rmtree(target, ignore_errors=True)
        root.rename(target)
    return require_pico_sdk()


def _cached() -> Path:
    # The packages' own tree: the SDK's lib/tinyusb is a relative link to its neighbour.
    return cache_folder() / "pico-sdk" / "usr" / "src" / "pico-sdk"


def _checked(folder: Path) -> PicoSdk:
    version_file = folder / "pico_sdk_version.cmake"
    if not (folder / "pico_sdk_init.cmake").is_file() or not version_file.is_file():
        raise ToolError(f"{VARIABLE} does not lead to a Pico SDK", where=str(folder), hint=_HINT)
    if not (folder / "lib" / "tinyusb" / "src" / "tusb.h").is_file():
        raise ToolError(
            "the Pico SDK lacks TinyUSB, without which the board has no USB serial port",
            where=str(folder),
            hint="In a git checkout: git submodule update --init lib/tinyusb.",
        )
    text = version_file.read_text(encoding="utf-8")
    numbers = [
        re.search(rf"^set\(PICO_SDK_VERSION_{part} (\d+)\)", text, re.MULTILINE)
        for part in ("MAJOR", "MINOR", "REVISION")
    ]
    version = ".".join(number.group(1) for number in numbers if number)
    if int(version.split(".")[0] or 0) < 2:
        raise ToolError(f"the Pico SDK {version} does not know the RP2350", where=str(folder), hint=_HINT)
    return PicoSdk(folder, version)


def _download(work: Path) -> list[Path]:
    """The packages as files in a folder: by the system's own sources, or by those of the release that has them."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise ToolError(f"{tool} is missing: the Pico SDK cannot be fetched from Debian's packages", hint=_HINT)
    try:
        _run(["apt-get", "download", *_PACKAGES], cwd=work)
    except ToolError:
        _run(["apt-get", *_private_apt(work), "update"])
        _run(["apt-get", *_private_apt(work), "download", *_PACKAGES], cwd=work)
    return sorted(work.glob("*.deb"))


def _private_apt(work: Path) -> list[str]:
    """Options by which apt uses a sources list and state of its own."""
    sources = work / "release.sources"
    if not sources.is_file():
        if not _KEYRING.is_file():
            raise ToolError("this system has no key of Debian's archive", hint=_HINT)
        for folder in ("lists/partial", "cache/archives/partial"):
            (work / folder).mkdir(parents=True)
        sources.write_text(
            f"Types: deb\nURIs: {_mirror()}\nSuites: {_RELEASE}\nComponents: main\nSigned-By: {_KEYRING}\n",
            encoding="utf-8",
        )
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": work / "lists",
        "Dir::Cache": work / "cache",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _mirror() -> str:
    """The Debian mirror that the system itself uses."""
    listed = _run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"])
    for line in listed.splitlines():
        origin, _, uri = line.partition(" ")
        if origin == "Debian" and "security" not in uri:
            return uri
    raise ToolError("apt knows no Debian mirror: run `apt-get update` first", hint=_HINT)


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=600
    )
    if done.returncode != 0:
        raise ToolError(f"{command[0]} failed: {done.stderr.strip()[-500:]}", hint=_HINT)
    return done.stdout
