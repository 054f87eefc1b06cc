"""Every golden case, bit for bit, on every machine; nothing written outside outputs and scratch."""

import numpy as np
import pytest

from .golden import GOLDEN, read_cases

KERNELS = sorted(path.stem for path in (GOLDEN / "kernels").glob("*.npz"))
QUIRKS = sorted(path.stem for path in (GOLDEN / "quirks").glob("*.npz"))


def assert_exact(driver, cases):
    results = driver.run([case.call for case in cases])
    for case, result in zip(cases, results, strict=True):
        assert result.status == case.status, case.call.name
        assert result.broken_blocks == 0, case.call.name
        if case.status == 0:
            np.testing.assert_array_equal(result.output, case.output, err_msg=case.call.name)


def test_all_cases_are_there():
    assert len(KERNELS) == 22
    assert sum(len(read_cases("kernels", function)) for function in KERNELS) == 488


@pytest.mark.parametrize("function", KERNELS)
def test_kernels(driver, function):
    assert_exact(driver, read_cases("kernels", function))


@pytest.mark.parametrize("function", QUIRKS)
def test_right_where_cmsis_nn_is_not(driver, function):
    assert_exact(driver, read_cases("quirks", function))
