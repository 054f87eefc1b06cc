"""One build of the driver per machine and session."""

import pytest

from .machines import M33, MACHINES, Machine, build_driver


@pytest.fixture(scope="session")
def driver_for(tmp_path_factory):
    """Builds the driver for a machine at first use."""
    built = {}

    def get(machine: Machine):
        if machine.name not in built:
            built[machine.name] = build_driver(machine, tmp_path_factory.mktemp(machine.name))
        return built[machine.name]

    return get


@pytest.fixture(params=MACHINES, ids=lambda machine: machine.name, scope="session")
def driver(request, driver_for):
    return driver_for(request.param)


@pytest.fixture(scope="session")
def m33(driver_for):
    return driver_for(M33)
