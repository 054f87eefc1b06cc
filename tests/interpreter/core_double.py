"""Plays `arduino-cli` with a core installed: compiles and links a sketch by the core's recipes, for a virtual board.

The recipes have their properties where those of the cores have them: which one stands in a recipe, in what order, and
what is in the linker's group. Called as `core_double.py RECORD CORE FLAGS LINKER_SCRIPT OBJECTS -- WORDS`: a file to
append the words to; `mbed`, `renesas` or `lazy` (which links no library whole); the board's compiler flags; a linker
script; a folder to work in.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

CORE = Path(__file__).parents[2] / "firmware" / "ports" / "arduino-core"
ENGINE = CORE.parent.parent / "engines" / "executorch"
RECIPES = {
    # C++14 by the core; the sketch's own flags behind it.
    "mbed": {
        "cpp": "-std=gnu++14 {build.extra_flags} {compiler.cpp.extra_flags}",
        "c": "-std=gnu11 {build.extra_flags} {compiler.c.extra_flags}",
        "link": "{compiler.c.elf.extra_flags} {build.extra_flags} {objects} "
        "-Wl,--start-group {compiler.libraries.ldflags} -Wl,--end-group",
    },
    # The first releases: no flags of the sketch's own but build.extra_flags.
    "renesas": {
        "cpp": "-std=gnu++17 {build.extra_flags}",
        "c": "-std=gnu11 {build.extra_flags}",
        "link": "{build.extra_flags} {objects} -Wl,--start-group {compiler.libraries.ldflags} -Wl,--end-group",
    },
}
RECIPES["lazy"] = RECIPES["mbed"]


def filled(recipe: str, properties: dict[str, str]) -> list[str]:
    """A recipe's words: properties put in, then split at blanks outside quotes."""
    for name in ("build.extra_flags", "compiler.cpp.extra_flags", "compiler.c.extra_flags"):
        recipe = recipe.replace(f"{{{name}}}", properties.get(name, ""))
    for name in ("compiler.c.elf.extra_flags", "compiler.libraries.ldflags", "objects"):
        recipe = recipe.replace(f"{{{name}}}", properties.get(name, ""))
    return shlex.split(recipe)


def compile_sketch(core: str, flags: str, script: str, folder: Path, words: list[str]) -> None:
    pairs = [words[i + 1].split("=", 1) for i, word in enumerate(words) if word == "--build-property"]
    properties = dict(pairs)
    project, output = Path(words[-3]), Path(words[words.index("--output-dir") + 1])
    common = [*shlex.split(flags), "-Os", "-ffunction-sections", "-fdata-sections", "-w", f"-I{CORE}"]
    cpp = [*common, "-fno-exceptions", "-fno-rtti", *filled(RECIPES[core]["cpp"], properties)]
    c = [*common, *filled(RECIPES[core]["c"], properties)]
    sources = [project / f"{project.name}.ino", *sorted((project / "src").rglob("*.c*")), *sorted(CORE.glob("*.cpp"))]
    sources.append(ENGINE / "ports" / "qemu-mps2" / "bare.cpp")  # what real cores have by themselves
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for source in sources:
        objects.append(folder / f"{source.name}.o")
        compiler = ["arm-none-eabi-gcc", *c] if source.suffix == ".c" else ["arm-none-eabi-g++", *cpp]
        before = ["-x", "c++", "-include", "Arduino.h"] if source.suffix == ".ino" else []
        subprocess.run([*compiler, *before, "-c", source, "-o", objects[-1]], check=True, stdout=sys.stderr)
    words = filled(RECIPES[core]["link"], properties | {"objects": shlex.join(map(str, objects))})
    if core == "lazy":
        words.remove("-Wl,--whole-archive")
    output.mkdir(parents=True, exist_ok=True)
    link = ["arm-none-eabi-g++", *shlex.split(flags), "-nostartfiles", f"-T{script}", "-Wl,--gc-sections"]
    link += ["-specs=nano.specs", "-specs=nosys.specs", "-o", output / f"{project.name}.ino.elf"]
    subprocess.run([*link, *words], check=True, stdout=sys.stderr)  # the answer alone goes to standard output


def main() -> int:
    split = sys.argv.index("--")
    record, core, flags, script, folder = sys.argv[1:split]
    words = sys.argv[split + 1 :]
    with Path(record).open("a") as file:
        file.write(json.dumps(words) + "\n")
    if words[0] != "compile":
        print(json.dumps({}))
        return 0
    try:
        compile_sketch(core, flags, script, Path(folder), words)
    except subprocess.CalledProcessError as error:
        print(json.dumps({"compiler_err": str(error), "success": False, "error": "exit status 1"}))
        return 1
    print(json.dumps({"compiler_out": "", "compiler_err": "", "builder_result": {}, "success": True}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
