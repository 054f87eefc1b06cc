"""What tests of uploading share: boards whose bootloaders the simulation speaks, short patience, a person who helps."""

import shutil
import threading
from dataclasses import replace

import pytest

from tests.arduino.bootloader import FIRST
from toolkit.board import load_board
from toolkit.flashing.arduino import ArduinoFlasher, Patience
from toolkit.flashing.choice import Wanted

QUICK = Patience(bootloader=3, person=4, upload=40, port=4, access=2, afresh=1)

needs_bossac = pytest.mark.skipif(shutil.which("bossac") is None, reason="bossac (Debian: bossa-cli) is not installed")


def samd(name):
    """A board with the bootloader of a SAMD21: the chips that Debian's bossac knows have an offset."""
    chosen = load_board(name)
    return replace(chosen, arduino=replace(chosen.arduino, address=FIRST))


class Person:
    """Someone in front of the board: hears what is said, and does what is asked when willing.

    Attributes:
        simulated: the board.
        willing: whether to do what is asked.
        said: what was heard.
    """

    def __init__(self, simulated, *, willing=True):
        self.simulated = simulated
        self.willing = willing
        self.said = []

    def __call__(self, text):
        self.said.append(text)
        if not self.willing:
            return
        if "reset button twice" in text:
            threading.Timer(0.3, self.simulated.double_tap).start()

    def count(self, words):
        return sum(words in text for text in self.said)


def flash(board, simulated, binary, *, say=lambda _: None, patience=QUICK, wanted=Wanted()):  # noqa: B008 - immutable
    return ArduinoFlasher(board, simulated, say, patience).flash(binary, wanted)
