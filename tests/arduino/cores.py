"""`arduino-cli` with cores installed, played by a script; answers have the shape that the real one's have.

What is a result goes to standard output; a failure is an object with `error` on standard error, except that of a
compilation.
"""

import json
import sys
from pathlib import Path

DOUBLE = """#!{python}
import json, pathlib, shutil, sys
words = sys.argv[1:]
assert words[-2:] == ["--format", "json"], words
words = words[:-2]
here = pathlib.Path(r"{folder}")
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(words) + chr(10))
answers = json.loads((here / "answers.json").read_text())

def fail(error, stream=sys.stderr):
    print(json.dumps({{"error": error}}, indent=2), file=stream)
    sys.exit(1)

def option(name):
    return words[words.index(name) + 1]

if words[:2] == ["board", "details"]:
    assert words[2:] == ["--fqbn", option("--fqbn")], words
    answer = answers["boards"].get(option("--fqbn"), answers["otherwise"])
    fail("Error getting board details: " + answer) if isinstance(answer, str) else print(json.dumps(answer, indent=2))
elif words[:2] == ["core", "list"]:
    print(json.dumps(answers["cores"], indent=2))
elif words == ["version"]:
    print(json.dumps(answers["version"], indent=2))
elif words[0] == "compile":
    folder = pathlib.Path(option("--output-dir"))
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(answers["elf"], folder / (pathlib.Path(words[-1]).name + ".ino.elf"))
    print(json.dumps({{"compiler_out": "", "compiler_err": "", "builder_result": {{}}, "success": True}}))
else:
    fail("unknown command")
"""

VERSION = {
    "Application": "arduino-cli",
    "VersionString": "1.2.2",
    "Commit": "c11b9dd5",
    "Status": "",
    "Date": "2025-04-22T13:50:12Z",
}

NOT_INSTALLED = "Unknown FQBN: platform arduino:mbed_nano is not installed"


def details(fqbn, version="4.2.1", size=None, data=None, **more):
    """What `board details` says of a board: sizes are bytes of flash and RAM, None where its core says none."""
    board = fqbn.split(":")[2]
    properties = [
        "build.arch=" + fqbn.split(":")[1].upper(),
        "build.board=" + board.upper(),
        "build.extra_flags=",
        "runtime.platform.path=/home/me/.arduino15/packages/arduino/hardware",
        "software=ARDUINO",
        *([f"upload.maximum_data_size={data}"] if data is not None else []),
        *([f"upload.maximum_size={size}"] if size is not None else []),
        "upload.protocol=",
        "upload.tool=bossac",
        "upload.use_1200bps_touch=true",
    ]
    return {
        "fqbn": ":".join(fqbn.split(":")[:3]),
        "name": board,
        "version": version,
        "properties_id": board,
        "official": True,
        "package": {"maintainer": "Arduino", "name": "arduino", "help": {"online": "http://www.arduino.cc/"}},
        "platform": {"architecture": fqbn.split(":")[1], "category": "Arduino", "name": "Boards"},
        "identification_properties": [{"properties": {"pid": "0x805a", "vid": "0x2341"}}],
        "build_properties": properties,
    } | more


def platforms(**versions):
    """What `core list` says since 1.0; names have `__` for a colon."""
    return {
        "platforms": [
            {
                "id": name.replace("__", ":"),
                "maintainer": "Arduino",
                "indexed": True,
                "releases": {version: {"name": "Boards", "version": version, "installed": True}},
                "installed_version": version,
                "latest_version": version,
            }
            for name, version in versions.items()
        ]
    }


class Cli:
    """The double in a folder.

    Attributes:
        path: of the script.
    """

    def __init__(self, folder: Path, elf: Path | None = None):
        folder.mkdir()
        self.path = folder / "arduino-cli"
        self._folder, self._elf = folder, str(elf)
        self.path.write_text(DOUBLE.format(python=sys.executable, folder=folder))
        self.path.chmod(0o755)
        self.answer()

    def answer(self, boards=None, *, otherwise=NOT_INSTALLED, cores=None, version=VERSION):
        """What it will say: boards by FQBN, of others `otherwise`; both are answers of `board details`, or errors."""
        answers = {
            "boards": boards or {},
            "otherwise": otherwise,
            "cores": platforms() if cores is None else cores,
            "version": version,
            "elf": self._elf,
        }
        (self._folder / "answers.json").write_text(json.dumps(answers))

    @property
    def calls(self):
        """The words of every call, without `--format json`."""
        log = self._folder / "calls"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
