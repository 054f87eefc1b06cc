"""The very sketch folder on virtual boards: every byte right, and the beginner's prints beside the protocol."""

import re
import subprocess
import time

import numpy as np
import pytest
import serial

from tests.arduino.conftest import CORE
from tests.conftest import GOLDEN, golden_input, golden_plan
from toolkit import emulation
from toolkit.building import build, find
from toolkit.building.arduino import sketch_definitions
from toolkit.building.tools import CMAKE, NINJA
from toolkit.device import Device, Transport
from toolkit.device.protocol import Command, Status
from toolkit.errors import BuildError
from toolkit.reference import Reference
from toolkit.rendering.sketch import Form, Numbers, render_sketch
from toolkit.resources import resource


@pytest.fixture
def run(tmp_path):
    """Renders, builds and starts a golden model's sketch on its virtual board: (plan, running board)."""
    with_block = []

    def start(model, board, name="Sketch", **words):
        plan = golden_plan(model, board)
        render_sketch(plan, tmp_path / name, **words)
        virtual = plan.board.virtual()
        running = emulation.start(build(tmp_path / name, virtual), virtual)
        with_block.append(running)
        return plan, running.__enter__()

    yield start
    for running in with_block:
        running.__exit__(None, None, None)


def lines(port, count, seconds=30):
    """So many lines of text that a sketch prints."""
    with serial.Serial(port, timeout=0.2) as line:
        text, deadline = b"", time.monotonic() + seconds
        while text.count(b"\n") < count and time.monotonic() < deadline:
            text += line.read(200)
    return text.decode("ascii").splitlines()[:count]


@pytest.mark.parametrize("numbers", [Numbers.FLOAT, Numbers.INT8])
def test_what_the_sketch_prints_is_what_the_reference_says(run, numbers):
    """The bare sketch puts zeros in; resnet8's golden program then has one answer, whichever numbers it works with."""
    labels = [f"thing {number}" for number in range(10)]
    plan, board = run("resnet8", "nano33ble", labels=labels, numbers=numbers)
    shape = plan.program.tensors[plan.program.inputs[0]].shape
    answer = Reference(plan.program).run((np.zeros(shape, np.float32),)).outputs[0].reshape(-1)
    best = int(np.argmax(answer))
    said = re.fullmatch(r"class thing (\d): (-?[\d.]+), took (\d+) us", lines(board.port, 2)[1])
    assert said is not None
    assert int(said[1]) == best
    assert float(said[2]) == pytest.approx(float(answer[best]), abs=6e-5)
    assert 1_500_000 < int(said[3]) < 3_000_000  # 16.5 million instructions of 128 ns


def test_the_sketch_holds_its_peace_while_the_computer_works(run):
    plan, board = run("dae", "nano33ble")
    texts = []
    with Transport(board.port, log=texts.append) as transport:
        device = Device(transport)
        texts.clear()
        inputs = golden_input("dae")
        for _ in range(5):
            device.write_inputs([inputs])
            device.invoke()
            answer = device.read_outputs()[0]
            assert answer.tobytes() == np.load(GOLDEN / "dae" / "output.npy").tobytes()
            time.sleep(0.3)
        assert texts == []
    assert 0 < plan.arena == device.hello.arena


def test_a_computer_that_went_away_is_forgotten(tmp_path):
    """After a while the sketch runs again, and what the computer wrote is gone."""
    plan = golden_plan("dae", "nano33ble")
    folder = render_sketch(plan, tmp_path / "Sketch").folder
    face = folder / "src" / "internal" / "face.cpp"
    assert "patience_ms = 30000;" in face.read_text()
    face.write_text(face.read_text().replace("patience_ms = 30000;", "patience_ms = 3000;"))
    virtual = plan.board.virtual()
    with emulation.start(build(folder, virtual), virtual) as board:
        with Transport(board.port) as transport:
            Device(transport).write_inputs([golden_input("dae")])
        assert "took" in lines(board.port, 2, seconds=60)[1]
        with Transport(board.port) as transport:
            transport.send(bytes([Command.INVOKE, 77, 1, 0, 0, 0]))
            assert transport.receive(20) == bytes([Command.INVOKE | 0x80, 77, Status.NOT_GREETED])


def test_a_library_links_with_its_example(tmp_path):
    plan = golden_plan("dae", "nano33ble")
    library = render_sketch(plan, tmp_path / "Lib", form=Form.LIBRARY)
    virtual = plan.board.virtual()
    command = [find(CMAKE), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={find(NINJA)}", "-S", CORE, "-B", tmp_path / "b"]
    command += [f"-DCMAKE_TOOLCHAIN_FILE={resource('cmake') / 'arm-none-eabi.cmake'}", f"-DLIBRARY={library.folder}"]
    for words in (command + sketch_definitions(library.sketch.parent, virtual), [find(CMAKE), "--build", "b"]):
        subprocess.run([str(word) for word in words], check=True, cwd=tmp_path, capture_output=True)
    assert (tmp_path / "b" / "runner.elf").stat().st_size > 300_000


def test_building_leaves_the_sketch_as_it_was(tmp_path):
    plan = golden_plan("dae", "nano33ble")
    folder = render_sketch(plan, tmp_path / "Sketch").folder
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    build(folder, plan.board.virtual())
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "build" not in path.parts}
    assert before == after


def test_a_mistake_in_the_users_sketch_is_the_compilers_to_tell(tmp_path):
    plan = golden_plan("dae", "nano33ble")
    rendered = render_sketch(plan, tmp_path / "Sketch")
    rendered.sketch.write_text("void setup() { oops; }\nvoid loop() {}\n")
    with pytest.raises(BuildError) as caught:
        build(rendered.folder, plan.board.virtual())
    assert "Sketch.ino:1" in caught.value.hint
    assert "oops" in caught.value.hint


def test_what_does_not_fit_the_real_memory_does_not_link(tmp_path):
    """The virtual machines have 4 MB; a board keeps its own size on them."""
    plan = golden_plan("dae", "uno-q")
    rendered = render_sketch(plan, tmp_path / "Sketch")
    code = rendered.sketch.read_text()
    rendered.sketch.write_text(
        code.replace("void loop() {", "uint8_t large[200000];\n\nvoid loop() {\n    large[millis() % 200000] = 1;")
    )
    build(rendered.folder, plan.board.virtual())
    rendered.sketch.write_text(rendered.sketch.read_text().replace("200000", "300000"))
    with pytest.raises(BuildError) as caught:
        build(rendered.folder, plan.board.virtual())
    assert "overflowed" in caught.value.hint
