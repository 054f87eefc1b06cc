"""Arm's CMSIS-NN: where it is, which release, and whether it has the functions that a runner calls.

Nothing is downloaded: a copy is named by `--cmsis-nn` or `CMSIS_NN_PATH`. The same three kinds of copies are found by
`cmake/FindCmsisNN.cmake`, which travels with rendered projects.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from toolkit.building.prototypes import Prototype, read_prototypes
from toolkit.errors import ToolError
from toolkit.resources import resource

VARIABLE = "CMSIS_NN_PATH"
NEWEST = (8, 0, 0)
"""The last release that was looked at. The first with all functions is 7.0.0: minimum, maximum, transpose, batch matmul
and per-channel fully connected are not in 6.0.0."""

_HEADER = "arm_nnfunctions.h"
_INCLUDES = ("Include", "include", "include/cmsis-nn")
_ARCHIVES = ("lib*/libcmsis-nn.a", "lib*/cmsis-nn.a")
_HINT = (
    f"Name a copy of release 7.0.0 or newer with --cmsis-nn or {VARIABLE}: a checkout of Arm's CMSIS-NN "
    "(CMakeLists.txt, Include/ and Source/), the folder of its CMSIS-Pack (a .pdsc, Include/ and Source/), or an "
    "installed library (include/arm_nnfunctions.h and lib/libcmsis-nn.a). Nothing is downloaded. `--kernels deploy` "
    "does without it."
)


class Kind(Enum):
    """How a copy is linked."""

    CHECKOUT = "source checkout"
    PACK = "CMSIS-Pack"
    INSTALLED = "installed library"


@dataclass(frozen=True, slots=True)
class CmsisNn:
    """A usable copy of Arm's CMSIS-NN.

    Attributes:
        path: its folder.
        kind: how it is linked.
        include: folder of its public headers.
        version: release as its own files say it, or what `git describe` says; empty where nothing does.
        revision: of the header arm_nnfunctions.h, which has numbers of its own; empty where it names none.
        archive: the library where it is installed, None where it is built.
    """

    path: Path
    kind: Kind
    include: Path
    version: str
    revision: str
    archive: Path | None = None

    @property
    def title(self) -> str:
        """`Arm CMSIS-NN 7.0.0`; the header's revision where no release is known."""
        known = self.version or (f"(header {self.revision})" if self.revision else "of unknown release")
        return f"Arm CMSIS-NN {known}"

    @property
    def warning(self) -> str:
        """What a user should know about the release, empty when there is nothing."""
        if _numbers(self.version) > NEWEST:
            newest = ".".join(map(str, NEWEST))
            return f"{self.title} is newer than {newest}, the last release that this toolkit knows"
        return ""

    def files(self) -> list[Path]:
        """Everything that decides what is built, sorted."""
        folders = (self.include, self.path / "Source")
        found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        top = [*self.path.glob("*.pdsc"), *self.path.glob("CMakeLists.txt")]
        return sorted({*found, *top, *([self.archive] if self.archive else [])})


def find_cmsis_nn(named: str | None = None) -> CmsisNn | None:
    """The copy that is named, else that of `CMSIS_NN_PATH`; None when neither names one.

    Raises:
        ToolError: one is named, and it is not usable: not there, too old, or another library.
    """
    if named is not None and not named.strip():
        raise ToolError("--cmsis-nn is empty", hint=_HINT)
    place = named or os.environ.get(VARIABLE, "").strip()
    return _checked(Path(place).expanduser().resolve()) if place else None


def require_cmsis_nn(named: str | None = None) -> CmsisNn:
    """The copy; raises ToolError with what to do when none is named or it is not usable."""
    found = find_cmsis_nn(named)
    if found is None:
        raise ToolError(f"no Arm CMSIS-NN is named: neither --cmsis-nn nor {VARIABLE} is set", hint=_HINT)
    return found


def _checked(path: Path) -> CmsisNn:
    if not path.is_dir():
        raise ToolError("there is no such folder, and so no CMSIS-NN", where=str(path), hint=_HINT)
    include = next((path / name for name in _INCLUDES if (path / name / _HEADER).is_file()), None)
    if include is None:
        if (path / _HEADER).is_file():
            raise ToolError(f"this folder holds CMSIS-NN's headers: name the one above, {path.parent}", where=str(path))
        looked = ", ".join(f"{name}/{_HEADER}" for name in _INCLUDES)
        raise ToolError(f"there is no CMSIS-NN here; looked for {looked}", where=str(path), hint=_HINT)
    kind, archive = _kind(path, include)
    text = (include / _HEADER).read_text(encoding="utf-8", errors="replace")
    revision = re.search(r"(?a)\$Revision:\s*(V\.?[\d.]*\d)", text)
    found = CmsisNn(path, kind, include, _version(path, include), revision.group(1) if revision else "", archive)
    _check_functions(found, text)
    return found


def _kind(path: Path, include: Path) -> tuple[Kind, Path | None]:
    """How a copy is linked, and its archive when it is installed."""
    if (path / "Source").is_dir():
        if (path / "CMakeLists.txt").is_file():
            return Kind.CHECKOUT, None
        if any(path.glob("*.pdsc")):
            return Kind.PACK, None
    archives = sorted(archive for pattern in _ARCHIVES for archive in path.glob(pattern))
    if archives:
        return Kind.INSTALLED, archives[0]
    raise ToolError(
        f"the headers of CMSIS-NN are in {include.name}/, but the library is not here: looked for CMakeLists.txt or a "
        f".pdsc beside Source/, and for {' and '.join(_ARCHIVES)}",
        where=str(path),
        hint=_HINT,
    )


def _check_functions(found: CmsisNn, header: str) -> None:
    """Raise a ToolError unless the header declares every function a runner calls, with our parameters."""
    theirs = read_prototypes(header)
    needed = needed_functions()
    where = str(found.include / _HEADER)
    missing = sorted(set(needed) - set(theirs))
    if missing:
        raise ToolError(
            f"{found.title} is too old: it lacks {_some(missing)}; 7.0.0 is the first release that has all functions",
            where=where,
            hint=_HINT,
        )
    others = sorted(name for name, prototype in needed.items() if theirs[name] != prototype)
    if others:
        raise ToolError(
            f"this is not the API of Arm's releases 7 and 8: {_some(others)} takes other parameters (forks differ)",
            where=where,
            hint=_HINT,
        )


def needed_functions() -> dict[str, Prototype]:
    """Functions that a runner may call, as our own header declares them."""
    ours = read_prototypes((resource("firmware") / "kernels" / "include" / _HEADER).read_text(encoding="utf-8"))
    return {
        name: prototype
        for name, prototype in ours.items()
        if not name.endswith(("_dsp", "_mve")) and name != "arm_vector_sum_s8"
    }


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _version(path: Path, include: Path) -> str:
    """The release: from the pack's description, the build files, version macros, or the checkout's tags.

    Arm's repository has none of the first three (its .pdsc says 0.0.0 until a pack is made of it).
    """
    release = r'(?a)<release [^>]*version="([\w.+-]+)"'
    project = r"(?ai)\bproject\s*\([^)]*\bVERSION\s+([\d.]+)"
    macro = r'(?am)^\s*#\s*define\s+\w*NN_VERSION\w*\s+"?(\d+\.\d+\.\d+)'
    sources = [(pdsc, release) for pdsc in sorted(path.glob("*.pdsc"))]
    sources += [(path / "CMakeLists.txt", project)]
    sources += [(header, macro) for header in sorted(include.glob("*.h"))]
    for file, pattern in sources:
        if file.is_file():
            match = re.search(pattern, file.read_text(encoding="utf-8", errors="replace"))
            if match and match.group(1) != "0.0.0":
                return match.group(1)
    return _tag(path)


def _tag(path: Path) -> str:
    """What git says of a checkout, empty when it is none or has no tags."""
    git = shutil.which("git")
    if git is None or not (path / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            [git, "-C", str(path), "describe", "--tags"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.fullmatch(r"(?a)v?(\d+\.[\w.+-]+)", done.stdout.strip())
    return match.group(1) if done.returncode == 0 and match else ""


def _numbers(version: str) -> tuple[int, ...]:
    """Major, minor and patch; empty where there are none."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part or 0) for part in match.groups()) if match else ()
