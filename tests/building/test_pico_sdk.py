"""Where the Pico SDK comes from."""

import shutil

import pytest

from toolkit.building.pico_sdk import fetch_pico_sdk, find_pico_sdk, require_pico_sdk
from toolkit.errors import ToolError


@pytest.fixture
def sdk(tmp_path, monkeypatch):
    """A folder that looks like an SDK with TinyUSB."""
    folder = tmp_path / "sdk"
    (folder / "lib" / "tinyusb" / "src").mkdir(parents=True)
    (folder / "lib" / "tinyusb" / "src" / "tusb.h").write_text("")
    (folder / "pico_sdk_init.cmake").write_text("")
    (folder / "pico_sdk_version.cmake").write_text(
        "# set(PICO_SDK_VERSION_MAJOR 9)\nset(PICO_SDK_VERSION_MAJOR 2)\nset(PICO_SDK_VERSION_MINOR 3)\n"
        "set(PICO_SDK_VERSION_REVISION 4)\n"
    )
    monkeypatch.setenv("PICO_SDK_PATH", str(folder))
    return folder


def test_the_variable_names_it(sdk):
    found = find_pico_sdk()
    assert (found.path, found.version) == (sdk, "2.3.4")


def test_a_variable_that_leads_nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("PICO_SDK_PATH", str(tmp_path))
    with pytest.raises(ToolError, match="PICO_SDK_PATH does not lead to a Pico SDK") as caught:
        find_pico_sdk()
    assert caught.value.where == str(tmp_path)


def test_a_checkout_without_its_submodule(sdk):
    shutil.rmtree(sdk / "lib")
    with pytest.raises(ToolError, match="lacks TinyUSB") as caught:
        find_pico_sdk()
    assert "git submodule update --init lib/tinyusb" in caught.value.hint


def test_an_sdk_that_is_too_old(sdk):
    version = sdk / "pico_sdk_version.cmake"
    version.write_text(
        version.read_text().replace("\nset(PICO_SDK_VERSION_MAJOR 2)", "\nset(PICO_SDK_VERSION_MAJOR 1)")
    )
    with pytest.raises(ToolError, match=r"1\.3\.4 does not know the RP2350"):
        find_pico_sdk()


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="Debian's packages come by apt")
def test_it_comes_from_debians_packages(monkeypatch, tmp_path):
    """The real download, into an empty cache; a second call finds it there."""
    monkeypatch.delenv("PICO_SDK_PATH", raising=False)
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    sdk = fetch_pico_sdk()
    assert int(sdk.version.split(".")[0]) >= 2
    assert (sdk.path / "src" / "boards" / "include" / "boards" / "pico2.h").is_file()
    assert require_pico_sdk() == sdk
    assert [path.name for path in (tmp_path / "cache").iterdir()] in ([], ["pico-sdk"])
