"""A few random sequences of faults while uploading; `python -m tests.arduino.sequences` runs many."""

from tests.arduino.sequences import run_sequences


def test_random_sequences():
    endings = run_sequences(6, seed=11)
    assert sum(endings.values()) == 6
