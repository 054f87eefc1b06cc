"""A real board's core is told of ExecuTorch by properties of its recipes: what arduino-cli is called with, and that it
compiles and links by them."""

import json
import shlex
import sys

import numpy as np
import pytest

from tests.interpreter import core_double
from tests.interpreter.conftest import PROGRAMS
from tests.interpreter.trees import GOLDEN_OPERATORS, Compiler, board_installation, empty_installation
from toolkit import emulation
from toolkit.board import board_names, load_board
from toolkit.building.image import read_image
from toolkit.device import Device, Transport
from toolkit.errors import BuildError, ToolError
from toolkit.interpreter import build_interpreter, make_interpreter_plan, read_installation, render_interpreter_sketch
from toolkit.interpreter.arduino import build_properties

NANO, UNO_R4 = load_board("nano33ble"), load_board("uno-r4-wifi")
CORES = {load_board(name).arduino.core: load_board(name) for name in board_names() if load_board(name).arduino}


@pytest.fixture
def installed(tmp_path, wheel):
    """An installation for the Nano 33 BLE in a folder with a blank in its name; what can be read of it."""
    libraries = {
        "cortex_m_ops_lib": ["cortex_m::pad.out"],
        "portable_ops_lib": ["aten::cat.out"],
        "other_ops": ["a::b.out"],
    }
    folder = empty_installation(tmp_path / "my executorch", NANO, wheel, libraries)
    Compiler(NANO, wheel).library(folder / "lib/libcmsis-nn.a", [])
    return read_installation(folder, NANO)


@pytest.mark.parametrize("core", CORES)
def test_words_for_every_core(installed, core):
    properties = build_properties(installed, ["cortex_m_ops_lib", "portable_ops_lib"], CORES[core].arduino)
    lib = f"{installed.path}/lib"
    assert shlex.split(properties.pop("compiler.libraries.ldflags")) == [
        "-Wl,--whole-archive",
        f"{lib}/libcortex_m_ops_lib.a",
        f"{lib}/libportable_ops_lib.a",
        "-Wl,--no-whole-archive",
        f"{lib}/libcmsis-nn.a",
        f"{lib}/libexecutorch_core.a",
    ]
    ((name, value),) = properties.items()
    words = shlex.split(value)
    include = f"{installed.path}/include"
    flags = [f"-I{include}", f"-I{include}/executorch/runtime/core/portable_type/c10"]
    flags.append("-DC10_USING_CUSTOM_GENERATED_MACROS")
    if core == "arduino:renesas_uno":
        assert (name, words) == ("build.extra_flags", flags)
    else:
        assert (name, words) == ("compiler.cpp.extra_flags", ["-std=gnu++17", *flags])


def test_every_core_is_known():
    assert set(CORES) == {
        *("arduino:mbed_nano", "arduino:mbed_giga", "arduino:mbed_nicla", "arduino:mbed_portenta"),
        *("arduino:renesas_uno", "arduino:zephyr", "rp2040:rp2040"),
    }


def test_a_path_that_properties_cannot_hold(tmp_path, wheel):
    folder = empty_installation(tmp_path / "{build.path}", NANO, wheel, {})
    with pytest.raises(ToolError, match="takes no quotes and braces"):
        build_properties(read_installation(folder, NANO), [], NANO.arduino)


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Installs `core_double.py` as arduino-cli with the core of a board; returns the words it was called with."""

    def install(board, core):
        twin = board.virtual()
        script = (core_double.CORE / "memory.ld.in").read_text()
        values = {"FLASH_ORIGIN": twin.flash.origin, "FLASH_SIZE": twin.flash.size, "RAM_ORIGIN": twin.ram.origin}
        values |= {"RAM_SIZE": twin.ram.size, "STACK_SIZE": twin.stack}
        for name, value in values.items():
            script = script.replace(f"@{name}@", str(value))
        (tmp_path / "memory.ld").write_text(script)
        own = [tmp_path / "words", core, " ".join(board.flags), tmp_path / "memory.ld", tmp_path / "objects"]
        command = shlex.join(map(str, [sys.executable, core_double.__file__, *own]))
        (tmp_path / "arduino-cli").write_text(f'#!/bin/sh\nexec {command} -- "$@"\n')
        (tmp_path / "arduino-cli").chmod(0o755)
        monkeypatch.setenv("ARDUINO_CLI", str(tmp_path / "arduino-cli"))
        return lambda: [json.loads(line) for line in (tmp_path / "words").read_text().splitlines()]

    return install


def rendered(board, folder, name="convolutions_explicit"):
    plan = make_interpreter_plan(PROGRAMS[name].read_bytes(), board, model=name, source=f"{name}.pte")
    return render_interpreter_sketch(plan, folder).folder, plan


@pytest.mark.parametrize(("board", "core"), [(NANO, "mbed"), (UNO_R4, "renesas")], ids=["mbed", "renesas"])
def test_a_sketch_is_compiled_and_linked_by_the_recipes_of_a_core(board, core, cli, wheel, tmp_path):
    folder, plan = rendered(board, tmp_path / "Sketch")
    operators = plan.contents.operators
    tree = board_installation(tmp_path / "my executorch", board, wheel, operators)
    words = cli(board, core)
    image = build_interpreter(folder, board, executorch=tree)
    (called,) = words()
    assert called[:3] == ["compile", "--fqbn", board.arduino.fqbn]
    assert called[-3:] == [str(folder), "--format", "json"]
    assert image.elf == folder / "build" / "device" / "Sketch.ino.elf"
    assert image.flash.constants == len(plan.pte)
    twin = board.virtual()
    with emulation.start(read_image(image.elf, folder, twin), twin) as running, Transport(running.port) as transport:
        device = Device(transport, stopped=running.stopped)
        assert device.hello.kernels == "ExecuTorch 1.5"
        assert device.hello.arena == plan.pools.total
        device.write_inputs([np.zeros(tensor.size, np.float32) for tensor in plan.contents.inputs])
        device.invoke()
        assert device.read_outputs()[0].reshape(-1)[0] == len(operators)  # all constructors ran


def test_a_core_that_links_only_what_is_referred_to_is_noticed(cli, wheel, tmp_path):
    folder, _ = rendered(NANO, tmp_path / "Sketch", "dae")
    cli(NANO, "lazy")
    with pytest.raises(BuildError, match="the linker left out what registers cortex_m::dequantize_per_te") as caught:
        build_interpreter(folder, NANO, executorch=board_installation(tmp_path / "executorch", NANO, wheel))
    assert "the core has to take compiler.libraries.ldflags" in caught.value.hint


def test_without_arduino_cli_it_is_said_what_the_ide_needs(installed, tmp_path, wheel, monkeypatch):
    monkeypatch.delenv("ARDUINO_CLI", raising=False)
    folder, _ = rendered(NANO, tmp_path / "Sketch", "dae")
    tree = empty_installation(tmp_path / "tree", NANO, wheel, {"cortex_m_ops_lib": GOLDEN_OPERATORS})
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError, match="arduino-cli is not installed") as caught:
        build_interpreter(folder, NANO, executorch=tree)
    assert "platform.local.txt" in caught.value.hint
    assert f'compiler.cpp.extra_flags=-std=gnu++17 "-I{tree}/include"' in caught.value.hint
    assert "compiler.libraries.ldflags=-Wl,--whole-archive" in caught.value.hint
