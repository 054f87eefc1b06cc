"""What an installed ExecuTorch can run is read off its libraries; what is missing is named."""

from dataclasses import replace

import pytest

from tests.interpreter.trees import GOLDEN_OPERATORS, board_installation, empty_installation
from toolkit.board import load_board
from toolkit.errors import PlanError, ToolError
from toolkit.interpreter import find_installation, read_installation, require_installation
from toolkit.interpreter.archive import registered_operators

M33 = load_board("qemu-m33")
ADD, MUL, CAT = "cortex_m::quantized_add.out", "cortex_m::quantized_mul.out", "aten::cat.out"


@pytest.fixture
def made_up(tmp_path, wheel):
    """An installation that registers what it is told to, read again."""

    def make(libraries, board=M33, **words):
        return read_installation(empty_installation(tmp_path / "made-up", board, wheel, libraries, **words), board)

    return make


def test_operators_are_read_off_the_libraries(made_up):
    found = made_up({"cortex_m_ops_lib": [ADD, MUL], "portable_ops_lib": [CAT]})
    assert {library.name: library.operators for library in found.libraries} == {
        "cortex_m_ops_lib": {ADD, MUL},
        "portable_ops_lib": {CAT},
    }
    assert found.target.arm
    assert found.registry is None


def test_only_what_registers_the_programs_operators_is_linked(made_up):
    found = made_up({"cortex_m_ops_lib": [ADD, MUL], "portable_ops_lib": [CAT, "aten::sum.out"], "selected": [CAT]})
    assert found.libraries_for([ADD]) == ("cortex_m_ops_lib",)
    assert found.libraries_for([ADD, CAT]) == ("cortex_m_ops_lib", "selected")
    assert found.libraries_for([CAT, "aten::sum.out"]) == ("portable_ops_lib",)
    assert found.libraries_for([]) == ()


def test_missing_operators_are_named_with_the_options_that_bring_them(made_up):
    found = made_up({"cortex_m_ops_lib": [ADD]})
    with pytest.raises(PlanError) as caught:
        found.libraries_for([ADD, MUL, CAT])
    assert caught.value.what == f"the installed ExecuTorch does not register the operators {CAT}, {MUL}"
    assert '-DEXECUTORCH_BUILD_CORTEX_M=ON -DEXECUTORCH_SELECT_OPS_LIST="aten::cat.out"' in caught.value.hint


def test_an_operator_that_two_libraries_register_is_refused(made_up):
    found = made_up({"a_ops": [ADD, MUL], "b_ops": [CAT, MUL]})
    with pytest.raises(PlanError, match=f"{MUL} is registered by a_ops and by b_ops"):
        found.libraries_for([ADD, CAT])


def test_a_table_of_kernels_that_is_too_small_is_refused(made_up):
    found = made_up({"cortex_m_ops_lib": [ADD, MUL, CAT]}, registry=24)
    assert found.registry == 24
    with pytest.raises(PlanError, match="register 3 kernels; the runtime has room for 2") as caught:
        found.libraries_for([ADD])
    assert "MAX_KERNEL_NUM" in caught.value.hint


def test_primitive_operators_take_room_in_the_table_as_well(made_up):
    """The library of the runtime itself registers some, and is linked whole."""
    prims = ["executorch_prim::et_view.default", "executorch_prim::add.Scalar"]
    found = made_up({"cortex_m_ops_lib": [ADD], "executorch": prims}, registry=24)
    with pytest.raises(PlanError, match="register 3 kernels"):
        found.libraries_for([ADD])


def test_names_in_an_executable_are_found_where_code_is(tmp_path, wheel):
    tree = board_installation(tmp_path / "tree", M33, wheel)
    assert registered_operators(tree / "lib" / "libcortex_m_ops_lib.a") == set(GOLDEN_OPERATORS)
    assert registered_operators(tree / "lib" / "libexecutorch_core.a") == frozenset()


def test_an_installation_for_another_float_abi(tmp_path, wheel):
    tree = empty_installation(tmp_path / "tree", load_board("pico2"), wheel, {})
    read_installation(tree, load_board("pico2"))
    with pytest.raises(
        ToolError, match="passes floats in ordinary registers, code for qemu-m33 in registers of the FPU"
    ):
        read_installation(tree, M33)


def test_an_installation_for_another_core(tmp_path, wheel):
    m55 = replace(M33, cpu="cortex-m55", flags=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"))
    tree = empty_installation(tmp_path / "tree", m55, wheel, {})
    read_installation(tree, m55)
    with pytest.raises(ToolError, match="built for a core that cortex-m33 is not") as caught:
        read_installation(tree, M33)
    assert '-DCMAKE_CXX_FLAGS="-mcpu=cortex-m33 -mthumb' in caught.value.hint


def test_an_installation_for_this_computer(tmp_path, wheel):
    host = load_board("host")
    tree = empty_installation(tmp_path / "tree", host, wheel, {})
    read_installation(tree, host)
    with pytest.raises(ToolError, match="was not built for an Arm core"):
        read_installation(tree, M33)


def test_an_installation_for_a_board_on_this_computer(tmp_path, wheel):
    tree = empty_installation(tmp_path / "tree", M33, wheel, {})
    with pytest.raises(ToolError, match="was built for a microcontroller"):
        read_installation(tree, load_board("host"))


def test_the_python_package_is_told_apart(wheel):
    with pytest.raises(ToolError, match="this is the Python package's ExecuTorch, which runs on this computer only"):
        read_installation(wheel, M33)


def test_a_folder_without_an_executorch(tmp_path):
    with pytest.raises(ToolError, match="there is no ExecuTorch here"):
        read_installation(tmp_path, M33)


def test_a_damaged_library(tmp_path, wheel):
    tree = empty_installation(tmp_path / "tree", M33, wheel, {"cortex_m_ops_lib": [ADD]})
    library = tree / "lib" / "libcortex_m_ops_lib.a"
    library.write_bytes(library.read_bytes()[:500])
    assert read_installation(tree, M33).libraries == ()
    core = tree / "lib" / "libexecutorch_core.a"
    core.write_bytes(b"!<arch>\n")
    with pytest.raises(ToolError, match="the library holds no object files"):
        read_installation(tree, M33)


def test_how_to_build_one_is_said_with_flags_and_operators(monkeypatch):
    monkeypatch.delenv("EXECUTORCH_PATH", raising=False)
    assert find_installation(None, M33) is None
    with pytest.raises(ToolError, match="no ExecuTorch is named") as caught:
        require_installation(None, M33, GOLDEN_OPERATORS)
    for words in (
        "release 1.5",
        "-DEXECUTORCH_BUILD_ARM_BAREMETAL=ON",
        '-DCMAKE_C_FLAGS="-mcpu=cortex-m33 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard"',
        '-DEXECUTORCH_SELECT_OPS_LIST="dim_order_ops::_clone_dim_order.out"',
        "--executorch PATH or EXECUTORCH_PATH",
        "docs/engines.md",
    ):
        assert words in caught.value.hint


def test_the_environment_names_one(tmp_path, wheel, monkeypatch):
    tree = empty_installation(tmp_path / "tree", M33, wheel, {"cortex_m_ops_lib": [ADD]})
    monkeypatch.setenv("EXECUTORCH_PATH", str(tree))
    found = find_installation(None, M33)
    assert found.path == tree
    other = empty_installation(tmp_path / "other", M33, wheel, {})
    assert find_installation(other, M33).path == other
