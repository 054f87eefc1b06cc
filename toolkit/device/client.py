"""A board that runs a model: what it says of itself, and what it answers to inputs."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.device.failures import explain
from toolkit.device.protocol import Command, DeviceTensor, Hello, Status, parse_hello, parse_tensor
from toolkit.device.transport import Transport
from toolkit.errors import DeviceError

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds.

    Attributes:
        repeat: after which an unanswered request is sent again.
        answer: within which a short request must be answered.
        inference: within which one run of the model must be done.
        greeting: within which a board must answer at all after it was started.
    """

    repeat: float = 1.0
    answer: float = 8.0
    inference: float = 120.0
    greeting: float = 15.0


class Device:
    """A model on a board.

    Args:
        transport: an open line to it.
        timeouts: how long to wait.
        stopped: tells how the board ended, None while it runs or where that is not known.

    Raises:
        DeviceError: from every method, when the board is silent, goes away, or reports a failure.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        timeouts: Timeouts | None = None,
        stopped: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._transport = transport
        self._timeouts = timeouts or Timeouts()
        self._stopped = stopped
        # A random start, so that answers to an earlier client's requests are not taken for ours.
        self._sequence = random.randrange(256)
        self.hello: Hello = parse_hello(self._ask(Command.HELLO, b"", self._timeouts.greeting), transport.port)
        self.inputs = tuple(self._describe(0, index) for index in range(self.hello.inputs))
        self.outputs = tuple(self._describe(1, index) for index in range(self.hello.outputs))

    def write_inputs(self, inputs: Sequence[Array]) -> None:
        """Write every input; elements are sent in the order of the arrays (the device's physical order)."""
        for index, (array, tensor) in enumerate(zip(inputs, self.inputs, strict=True)):
            data = np.ascontiguousarray(array, dtype=tensor.dtype.value).tobytes()
            step = self.hello.max_payload
            for offset in range(0, len(data), step):
                self._ask(Command.WRITE, struct.pack("<BI", index, offset) + data[offset : offset + step])

    def invoke(self, count: int = 1) -> int:
        """Run the model `count` times on what is in its inputs; ticks that took in all."""
        answer = self._ask(Command.INVOKE, struct.pack("<I", count), self._timeouts.inference * max(1, count))
        return self._integer(answer, "<Q")

    def read_outputs(self) -> tuple[Array, ...]:
        """Every output, in the device's physical order."""
        return tuple(
            self._read(Command.READ, struct.pack("<B", index), tensor.dtype.itemsize * int(np.prod(tensor.shape)))
            .view(tensor.dtype.value)
            .reshape(tensor.shape)
            for index, tensor in enumerate(self.outputs)
        )

    def invoke_layer(self, layer: int) -> int:
        """Run one layer alone; ticks that took."""
        answer = self._ask(Command.STEP, struct.pack("<H", layer), self._timeouts.inference)
        return self._integer(answer, "<Q")

    def read_layer(self, layer: int, nbytes: int) -> Array:
        """The bytes (uint8) of the result of a layer that ran last."""
        return self._read(Command.READ_LAYER, struct.pack("<H", layer), nbytes)

    def stack_high_water(self) -> int:
        """Bytes of stack that were ever used since the board started."""
        return self._integer(self._ask(Command.STACK, b""), "<I")

    def _describe(self, direction: int, index: int) -> DeviceTensor:
        return parse_tensor(self._ask(Command.DESCRIBE, bytes([direction, index])), self._transport.port)

    def _read(self, command: Command, prefix: bytes, nbytes: int) -> npt.NDArray[np.uint8]:
        data = bytearray()
        while len(data) < nbytes:
            size = min(self.hello.max_payload, nbytes - len(data))
            answer = self._ask(command, prefix + struct.pack("<IH", len(data), size))
            if len(answer) != size:
                raise self._error(f"the board sent {len(answer)} bytes where {size} were asked for")
            data += answer
        return np.frombuffer(bytes(data), dtype=np.uint8)

    def _integer(self, answer: bytes, layout: str) -> int:
        try:
            return int(struct.unpack(layout, answer)[0])
        except struct.error:
            raise self._error("the board's answer has the wrong length") from None

    def _ask(self, command: Command, payload: bytes, timeout_s: float | None = None) -> bytes:
        """Send a request until it is answered; the answer's payload.

        The same sequence number is kept for every repetition: a board that did the work and whose answer was lost
        answers again, and does not do it again.
        """
        self._sequence = (self._sequence + 1) % 256
        request = bytes([command, self._sequence]) + payload
        expected = bytes([command | 0x80, self._sequence])
        deadline = time.monotonic() + (timeout_s or self._timeouts.answer)
        while (left := deadline - time.monotonic()) > 0:
            self._transport.send(request)
            repeat_at = time.monotonic() + min(self._timeouts.repeat, left)
            while (wait := repeat_at - time.monotonic()) > 0:
                answer = self._transport.receive(min(wait, 0.25))
                if answer is not None and answer[:2] == expected and len(answer) >= 3:
                    return self._checked(command, answer[2], answer[3:])
                if answer is None and (how := self._stopped()) is not None:
                    raise self._error(f"the board stopped while it was asked to {_VERBS[command]}; it {how}")
        raise self._error(f"the board does not answer when asked to {_VERBS[command]}")

    def _checked(self, command: Command, status: int, payload: bytes) -> bytes:
        if status == Status.OK:
            return payload
        if status == Status.INFERENCE_FAILED and len(payload) == 6:
            failure = explain(self.hello.kernels, *struct.unpack("<Hi", payload))
            raise self._error(failure.what, failure.hint)
        if status == Status.NOT_GREETED:
            raise self._error(f"the board restarted before it was asked to {_VERBS[command]}: its inputs are lost")
        name = Status(status).name.lower().replace("_", " ") if status in set(Status) else f"status {status}"
        raise self._error(f"the board refused to {_VERBS[command]}: {name}")

    def _error(self, what: str, hint: str = "") -> DeviceError:
        hint = hint or "Reset the board and run it again; `deploy doctor` checks the setup."
        return DeviceError(what, where=self._transport.port, hint=hint)


_VERBS = {
    Command.HELLO: "say what it runs",
    Command.DESCRIBE: "describe a tensor",
    Command.WRITE: "take an input",
    Command.INVOKE: "run the model",
    Command.READ: "send an output",
    Command.STEP: "run a layer",
    Command.READ_LAYER: "send a layer's result",
    Command.STACK: "measure its stack",
}
