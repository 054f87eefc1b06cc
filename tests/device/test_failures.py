"""Status codes in words: every one of ExecuTorch's, as its public header lists them."""

import importlib.util
import re
from pathlib import Path

import pytest

from toolkit.device.failures import ERRORS, explain


@pytest.fixture(scope="module")
def codes():
    """Name by code, from `runtime/core/error.h` of the installed package."""
    spec = importlib.util.find_spec("executorch")
    header = Path(next(iter(spec.submodule_search_locations))) / "include/executorch/runtime/core/error.h"
    (body,) = re.findall(r"enum class Error : error_code_t \{(.*?)\};", header.read_text(), re.DOTALL)
    return {int(code, 16): name for name, code in re.findall(r"^  (\w+) = (0x[0-9A-Fa-f]+),", body, re.MULTILINE)}


def test_every_error_of_executorch_has_a_sentence(codes):
    assert len(codes) >= 20
    assert codes.pop(0) == "Ok"
    assert {code: name for code, (name, _, _) in ERRORS.items()} == codes
    sentences = [explain("ExecuTorch 1.5", 0, code | 2 << 24).what for code in codes]
    assert len(set(sentences)) == len(codes)


def test_a_missing_operator():
    failure = explain("ExecuTorch 1.5", 0, 0x02000014)
    assert failure.what == (
        "ExecuTorch failed while loading the method: an operator of the program is not registered in this image "
        "(OperatorMissing, 0x14)"
    )
    assert "docs/engines.md" in failure.hint


def test_a_pool_that_is_too_small_says_which():
    failure = explain("ExecuTorch 1.5", 0, 0x05000021)
    assert failure.what.startswith("ExecuTorch failed while running the model: a pool of memory is too small")
    assert "PROGRAM_TEMPORARY_POOL" in failure.hint


def test_codes_of_other_releases_are_shown():
    assert "(unknown, 0x77)" in explain("ExecuTorch 9", 0, 0x05000077).what
    assert "stage 200" in explain("ExecuTorch 9", 0, (200 << 24) - (1 << 32) | 0x14).what


def test_a_check_inside_executorch():
    failure = explain("ExecuTorch 1.5", 0, 0x07000001)
    assert "one of its own checks failed" in failure.what
    assert "Reset the board" in failure.hint


def test_our_own_engine_names_the_layer():
    assert explain("deploy kernels", 7, -1).what == "the kernel of layer 07 failed with status -1"


def test_arms_kernels_may_ask_for_more_than_planned():
    assert "--kernels deploy" in explain("Arm CMSIS-NN 7.0.0: 11 of 13 layers, ours for 2", 3, -1).hint
    assert explain("Arm CMSIS-NN 7.0.0", 3, -3).hint == ""
    assert explain("deploy kernels", 3, -1).hint == ""
