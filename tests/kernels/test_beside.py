"""The library beside another one of the same API: no name of that API is left in it."""

import re
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "firmware" / "kernels"
TARGETS = {
    "host": ([], "nm"),
    "m33": (
        [
            "-DCMAKE_SYSTEM_NAME=Generic",
            "-DCMAKE_C_COMPILER=arm-none-eabi-gcc",
            "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
            "-DCMAKE_C_FLAGS=-mcpu=cortex-m33 -mthumb",
        ],
        "arm-none-eabi-nm",
    ),
}


@pytest.fixture(params=TARGETS)
def names(request, tmp_path):
    """What the library defines, and what it wants from others."""
    options, nm = TARGETS[request.param]
    options = [*options, "-DDEPLOY_KERNELS_BESIDE_CMSIS_NN=ON"]
    subprocess.run(["cmake", "-G", "Ninja", "-S", KERNELS, "-B", tmp_path, *options], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True, capture_output=True)
    listed = subprocess.run([nm, "-g", tmp_path / "libdeploy_kernels.a"], capture_output=True, text=True, check=True)
    lines = [line.split() for line in listed.stdout.splitlines()]
    return {words[-1] for words in lines if len(words) == 3}, {words[-1] for words in lines if words[:1] == ["U"]}


def test_every_function_has_a_name_of_its_own(names):
    defined, wanted = names
    public = set(re.findall(r"\b(arm_\w+)\(", (KERNELS / "include" / "arm_nnfunctions.h").read_text()))
    assert len(public) == 31
    assert {name for name in defined if "arm_" in name} == {f"deploy_{name}" for name in public}
    assert not any(name.startswith("arm_") for name in wanted)
    assert {"deploy_quantize_f32_s8", "deploy_dequantize_s8_f32", "deploy_lookup_s8", "deploy_div_s8"} <= defined
