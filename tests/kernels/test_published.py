"""Our headers have CMSIS-NN's public API as Arm publishes it: compiled assertions on every type."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.cmsis_nn import published

INCLUDE = Path(__file__).parents[2] / "firmware" / "kernels" / "include"
COMPILERS = {
    "host": ["gcc"],
    "m33": ["arm-none-eabi-gcc", "-mcpu=cortex-m33", "-mthumb"],
}


def compiled(folder, include, *command, language="c", standard="c11"):
    """What the compiler says of the assertions, empty when they hold."""
    source = folder / "assertions.c"
    source.write_text(published.assertions())
    flags = ["-x", language, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
    done = subprocess.run([*command, *flags, str(source)], capture_output=True, text=True, check=False)
    return done.stderr


@pytest.mark.parametrize("machine", COMPILERS)
def test_our_header_is_the_published_one(tmp_path, machine):
    assert compiled(tmp_path, INCLUDE, *COMPILERS[machine]) == ""


def test_nothing_of_ours_is_left_unpublished():
    declared = set(re.findall(r"\b(arm_\w+)\(", (INCLUDE / "arm_nnfunctions.h").read_text()))
    assert declared == set(published.FUNCTIONS)


@pytest.mark.parametrize(
    ("file", "ours", "changed", "complaint"),
    [
        ("arm_nn_types.h", "int32_t w;\n    int32_t h;", "int32_t h;\n    int32_t w;", "order of cmsis_nn_tile.h"),
        ("arm_nn_types.h", "int32_t* multiplier;", "const int32_t* multiplier;", "quant_params.multiplier"),
        ("arm_nn_types.h", "const bool adj_y;", "const bool adj_y;\n    int32_t more;", "size of cmsis_nn_bmm_params"),
        ("arm_nn_types.h", "ARM_CMSIS_NN_FAILURE = -3", "ARM_CMSIS_NN_FAILURE = -4", "ARM_CMSIS_NN_FAILURE"),
        ("arm_nnfunctions.h", "const cmsis_nn_context* ctx, const int8_t* input_1_data", "int8_t* x", "arm_maximum_s8"),
        ("arm_nnfunctions.h", "const int8_t pad_value", "const int32_t pad_value", "arm_pad_s8"),
    ],
)
def test_a_header_that_differs_does_not_pass(tmp_path, file, ours, changed, complaint):
    for name in ("arm_nn_types.h", "arm_nnfunctions.h"):
        text = (INCLUDE / name).read_text()
        if name == file:
            assert ours in text
            text = text.replace(ours, changed, 1)
        (tmp_path / name).write_text(text)
    assert complaint in compiled(tmp_path, tmp_path, "gcc")


def test_the_headers_for_tests_are_the_published_ones(tmp_path):
    (tmp_path / "arm_nn_types.h").write_text(published.types_header())
    (tmp_path / "arm_nnfunctions.h").write_text(published.functions_header())
    assert compiled(tmp_path, tmp_path, "gcc") == ""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_our_kernels_beside_arms_have_their_types(tmp_path, language):
    """deploy_arm_nnfunctions.h declares each of our functions with the type that Arm's header gives it."""
    (tmp_path / "arm_nn_types.h").write_text(published.types_header())
    (tmp_path / "arm_nnfunctions.h").write_text(published.functions_header())
    beside = INCLUDE.parent / "beside"
    kernels = set(re.findall(r"deploy_(arm_\w+);", (beside / "deploy_arm_nnfunctions.h").read_text()))
    assert kernels == {name for name in published.FUNCTIONS if "_get_" not in name} - {"arm_vector_sum_s8"}
    source = tmp_path / "uses.c"
    lines = ['#include "deploy_arm_nnfunctions.h"', '#include "deploy_kernels.h"']
    for name in sorted(kernels):
        lines.append(f"void use_{name}(void) {{ __typeof__({name}) *f = {name}; f = deploy_{name}; (void)f; }}")
    source.write_text("\n".join([*lines, ""]))
    standard = "c11" if language == "c" else "c++14"
    flags = ["-x", language, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    done = subprocess.run(
        ["gcc", *flags, f"-I{tmp_path}", f"-I{beside}", str(source)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
