"""A virtual Pico 2 that misbehaves: success after a retry, or a named error; and the next run repairs what is left."""

import pytest

from tests.flashing.sequences import built_image, repaired, run_once, run_sequences
from toolkit.building.pico_sdk import fetch_pico_sdk
from toolkit.emulation import rp2350


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    fetch_pico_sdk()
    return built_image(tmp_path_factory.mktemp("pico2") / "project")


@pytest.mark.parametrize(
    ("fault", "endings"),
    [
        (rp2350.PortGone(seconds=6, after="flash"), {"verified"}),
        (rp2350.PortRenamed(times=3), {"verified"}),
        (rp2350.BytesLost(direction="to-board", after=700, count=30, times=4), {"verified"}),
        (rp2350.BytesLost(direction="from-board", after=20, count=3, times=4), {"verified"}),
        (rp2350.Silent(), {"DeviceError"}),
        (rp2350.VolumeFull(), {"FlashError"}),
        (rp2350.TornWrite(blocks=300), {"verified"}),
        (rp2350.TornWrite(blocks=300, times=9), {"FlashError"}),
        # At which moment it comes decides whether anything notices.
        (rp2350.RebootAt(instructions=9_000_000), {"verified", "DeviceError"}),
    ],
    ids=lambda value: rp2350.misbehaviour.text_of(value) if not isinstance(value, set) else "",
)
def test_a_fault_ends_as_it_should_and_the_next_run_repairs_it(built, tmp_path, fault, endings):
    plan, image = built
    assert run_once(tmp_path, image, plan, [fault]) in endings
    assert repaired(tmp_path, image, plan)


def test_random_sequences(built):
    plan, image = built
    endings = run_sequences(image, plan, 6, seed=3)
    assert sum(endings.values()) == 6
