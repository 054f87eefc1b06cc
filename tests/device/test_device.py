"""The client against a real runner, over lines that misbehave."""

import os
import random
import signal
import time

import numpy as np
import pytest

from tests.conftest import GOLDEN, golden_input
from tests.device.relay import Relay
from toolkit import emulation
from toolkit.board import load_board
from toolkit.device import Device, Timeouts, Transport
from toolkit.errors import DeviceError

QUICK = Timeouts(repeat=0.1, answer=3.0, inference=3.0, greeting=3.0)


@pytest.fixture
def board(built):
    _, image = built("dae", "host")
    with emulation.start(image, load_board("host")) as virtual:
        yield virtual


@pytest.fixture
def relay(board):
    with Relay(board.port) as line:
        yield line


def run_dae(device):
    device.write_inputs([golden_input("dae")])
    device.invoke()
    return device.read_outputs()[0]


def assert_right(output):
    assert output.tobytes() == np.load(GOLDEN / "dae" / "output.npy").tobytes()


def test_it_says_what_it_runs(board, built):
    plan, _ = built("dae", "host")
    with Transport(board.port) as transport:
        device = Device(transport)
    assert (device.hello.model, device.hello.board) == ("dae", "host")
    assert device.hello.sha256 == plan.program.sha256
    assert device.hello.arena == plan.arena
    assert device.hello.layers == len(plan.steps)
    assert [tensor.shape for tensor in (*device.inputs, *device.outputs)] == [(1, 640), (1, 640)]


def test_plain_text_between_frames_reaches_the_log(relay):
    lines = []
    with Transport(relay.port, log=lines.append) as transport:
        device = Device(transport)
        text = iter([b"\r\ntemperature 21\r\nfan on\r\n"])
        relay.to_client = lambda data: next(text, b"") + data
        assert_right(run_dae(device))
    assert lines[-2:] == ["temperature 21", "fan on"]  # the greeting of the runner may come before


def drop_once(position):
    """Loses the byte at one position of everything that passes."""
    seen = 0

    def pass_on(data):
        nonlocal seen
        at = position - seen
        seen += len(data)
        return data[:at] + data[at + 1 :] if 0 <= at < len(data) else data

    return pass_on


@pytest.mark.parametrize("position", [0, 1, 7, 100, 1040, 2590])
def test_a_byte_lost_on_the_way_to_the_board(relay, position):
    with Transport(relay.port) as transport:
        device = Device(transport, timeouts=QUICK)
        relay.to_board = drop_once(position)
        assert_right(run_dae(device))


@pytest.mark.parametrize("position", [0, 1, 5, 12, 60, 1100, 2700])
def test_a_byte_lost_on_the_way_back(relay, position):
    with Transport(relay.port) as transport:
        device = Device(transport, timeouts=QUICK)
        relay.to_client = drop_once(position)
        assert_right(run_dae(device))


def test_a_run_whose_answer_is_lost_is_not_repeated(relay):
    # The input's place in the arena is overwritten by a run: a second run would give another output.
    with Transport(relay.port) as transport:
        device = Device(transport, timeouts=QUICK)
        device.write_inputs([golden_input("dae")])
        relay.to_client = drop_once(3)
        device.invoke()
        assert_right(device.read_outputs()[0])


def test_garbage_between_frames_is_passed_over(relay):
    noise = bytes(random.Random(7).randrange(256) for _ in range(3000))
    with Transport(relay.port) as transport:
        device = Device(transport, timeouts=QUICK)
        first = iter([noise])
        relay.to_board = lambda data: next(first, b"") + data
        second = iter([noise])
        relay.to_client = lambda data: next(second, b"") + data
        assert_right(run_dae(device))


@pytest.mark.parametrize("seed", range(12))
def test_a_line_that_keeps_losing_and_changing_bytes(relay, seed):
    noise = random.Random(seed)

    def spoil(data):
        kept = bytearray()
        for byte in data:
            chance = noise.random()
            if chance < 0.0002:
                continue
            kept.append(noise.randrange(256) if chance < 0.0004 else byte)
        return bytes(kept)

    patient = Timeouts(repeat=0.1, answer=10.0, inference=10.0, greeting=10.0)
    with Transport(relay.port) as transport:
        relay.to_board = relay.to_client = spoil
        assert_right(run_dae(Device(transport, timeouts=patient)))


def test_a_frame_that_is_cut_off_ends_in_a_named_error_in_time(relay):
    with Transport(relay.port) as transport:
        device = Device(transport, timeouts=QUICK)
        relay.to_client = lambda data: data[: len(data) // 2]
        started = time.monotonic()
        with pytest.raises(DeviceError, match="does not answer when asked to take an input"):
            device.write_inputs([golden_input("dae")])
        assert time.monotonic() - started < QUICK.answer + 1


def test_a_silent_board_ends_in_a_named_error_in_time(relay):
    relay.to_client = lambda _: b""
    with Transport(relay.port) as transport:
        started = time.monotonic()
        with pytest.raises(DeviceError, match="does not answer when asked to say what it runs"):
            Device(transport, timeouts=QUICK)
        assert time.monotonic() - started < QUICK.greeting + 1


def test_a_board_that_stops_is_noticed_at_once(board):
    with Transport(board.port) as transport:
        device = Device(transport, stopped=board.stopped)
        os.kill(board.process.pid, signal.SIGKILL)
        board.process.wait()
        started = time.monotonic()
        with pytest.raises(DeviceError, match=r"ended with signal 9|went away"):
            device.invoke()
        assert time.monotonic() - started < 2


def test_a_board_that_restarted_is_noticed(built):
    """Its inputs are gone; without a word it would compute with whatever is in its memory."""
    _, image = built("dae", "host")
    board = load_board("host")
    with (
        emulation.start(image, board) as first,
        emulation.start(image, board) as second,
        Relay(first.port) as line,
        Transport(line.port) as transport,
    ):
        device = Device(transport, timeouts=QUICK)
        device.write_inputs([golden_input("dae")])
        line.exchange(second.port)
        with pytest.raises(DeviceError, match="the board restarted before it was asked to run the model"):
            device.invoke()


def test_a_port_that_goes_away_is_named(relay):
    with Transport(relay.port) as transport:
        device = Device(transport, timeouts=QUICK)
        relay.vanish()
        with pytest.raises(DeviceError, match="went away") as caught:
            device.invoke()
        assert caught.value.where == relay.port


def test_a_port_that_is_not_there(tmp_path):
    with pytest.raises(DeviceError, match="cannot be opened") as caught:
        Transport(str(tmp_path / "ttyX"))
    assert "ttyX" in str(caught.value)


def test_requests_that_make_no_sense_are_refused_and_harm_nothing(board):
    with Transport(board.port) as transport:
        device = Device(transport, timeouts=QUICK)
        with pytest.raises(DeviceError, match="refused to run a layer: bad request"):
            device.invoke_layer(99)
        with pytest.raises(DeviceError, match="refused to send a layer's result: bad request"):
            device.read_layer(0, 641)
        assert_right(run_dae(device))


def test_layers_give_the_golden_intermediates(board):
    with np.load(GOLDEN / "dae" / "intermediates.npz") as golden, Transport(board.port) as transport:
        device = Device(transport)
        device.write_inputs([golden_input("dae")])
        for layer in range(device.hello.layers):
            device.invoke_layer(layer)
            right = golden[f"{layer:02d}"]
            assert device.read_layer(layer, right.nbytes).tobytes() == right.tobytes()


def test_the_stack_is_measured(board):
    with Transport(board.port) as transport:
        device = Device(transport)
        before = device.stack_high_water()
        run_dae(device)
        assert 0 < before <= device.stack_high_water() < device.hello.stack
