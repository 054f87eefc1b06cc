"""Finding Arm's CMSIS-NN: three kinds of copies, their releases, and what is said of a copy that will not do."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cmsis_nn import published, tree
from tests.conftest import golden_plan
from toolkit.board import load_board
from toolkit.building import build, find_cmsis_nn, require_cmsis_nn
from toolkit.building.cmsis_nn import Kind, needed_functions
from toolkit.building.prototypes import Prototype, read_prototypes
from toolkit.building.tools import CMAKE, NINJA, find
from toolkit.errors import ToolError
from toolkit.planning import KernelLibrary
from toolkit.rendering import render

NEW_IN_7 = (
    "arm_batch_matmul_s8",
    "arm_fully_connected_per_channel_s8",
    "arm_maximum_s8",
    "arm_minimum_s8",
    "arm_transpose_s8",
)


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv("CMSIS_NN_PATH", raising=False)


@pytest.fixture
def library(tmp_path):
    """An installed library: the smallest of the three kinds, with an empty archive."""
    folder = tmp_path / "library"
    tree.headers(folder / "include")
    (folder / "lib").mkdir()
    (folder / "lib" / "libcmsis-nn.a").write_bytes(b"!<arch>\n")
    return folder


# --- what a header declares ------------------------------------------------------------------------------------------


def test_names_comments_and_qualifiers_of_values_make_no_difference():
    text = """
    /* arm_old_s8(int); */ // int arm_older_s8(int);
    #define arm_macro_s8(x) \\
        arm_other_s8(x);
    arm_cmsis_nn_status arm_some_s8(const int8_t *input,   /* in, out */
                                    int8_t *const output, const int32_t size,
                                    const cmsis_nn_dims* const dims);
    void arm_none_s8(void);
    int32_t arm_unnamed_s8(const int8_t *, int32_t);
    static inline int32_t arm_defined_s8(int32_t x) { return x; }
    """
    assert read_prototypes(text) == {
        "arm_some_s8": Prototype(
            "arm_cmsis_nn_status", ("const int8_t *", "int8_t *", "int32_t", "const cmsis_nn_dims *")
        ),
        "arm_none_s8": Prototype("void", ()),
        "arm_unnamed_s8": Prototype("int32_t", ("const int8_t *", "int32_t")),
    }


def test_what_a_runner_needs_is_published():
    theirs = read_prototypes(published.functions_header())
    needed = needed_functions()
    assert len(needed) == 21
    assert all(theirs[name] == prototype for name, prototype in needed.items())


# --- where it is -----------------------------------------------------------------------------------------------------


def test_none_is_named():
    assert find_cmsis_nn() is None
    with pytest.raises(ToolError, match="neither --cmsis-nn nor CMSIS_NN_PATH is set") as caught:
        require_cmsis_nn()
    assert "release 7.0.0 or newer" in caught.value.hint
    assert "Nothing is downloaded" in caught.value.hint
    assert "--kernels deploy" in caught.value.hint


def test_the_variable_names_a_copy_and_the_option_comes_first(library, tmp_path, monkeypatch):
    monkeypatch.setenv("CMSIS_NN_PATH", str(library))
    assert find_cmsis_nn().path == library
    other = shutil.copytree(library, tmp_path / "other")
    assert find_cmsis_nn(str(other)).path == other


def test_an_empty_variable_names_none(monkeypatch):
    monkeypatch.setenv("CMSIS_NN_PATH", "")
    assert find_cmsis_nn() is None


def test_an_empty_option():
    with pytest.raises(ToolError, match="--cmsis-nn is empty"):
        find_cmsis_nn("  ")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ToolError, match="there is no such folder") as caught:
        find_cmsis_nn(str(tmp_path / "missing"))
    assert caught.value.where == str(tmp_path / "missing")


def test_an_empty_folder_says_what_was_looked_for(tmp_path):
    with pytest.raises(ToolError, match=r"looked for Include/arm_nnfunctions\.h, include/arm_nnfunctions\.h") as caught:
        find_cmsis_nn(str(tmp_path))
    assert caught.value.where == str(tmp_path)
    assert "checkout" in caught.value.hint
    assert "CMSIS-Pack" in caught.value.hint


def test_the_folder_of_headers_points_to_the_one_above(library):
    with pytest.raises(ToolError, match=f"name the one above, {library}"):
        find_cmsis_nn(str(library / "include"))


def test_headers_without_a_library(library):
    shutil.rmtree(library / "lib")
    with pytest.raises(
        ToolError, match=r"looked for CMakeLists\.txt or a \.pdsc beside Source/, and for lib\*/libcmsis"
    ):
        find_cmsis_nn(str(library))


def test_kinds(library, tmp_path):
    checkout, pack = tree.checkout(tmp_path / "checkout"), tree.pack(tmp_path / "pack")
    assert find_cmsis_nn(str(checkout)).kind is Kind.CHECKOUT
    assert find_cmsis_nn(str(pack)).kind is Kind.PACK
    found = find_cmsis_nn(str(library))
    assert (found.kind, found.archive) == (Kind.INSTALLED, library / "lib" / "libcmsis-nn.a")
    assert found.include == library / "include"


@pytest.mark.parametrize("place", ["lib/cmsis-nn.a", "lib64/libcmsis-nn.a"])
def test_other_places_of_an_archive(library, place):
    shutil.rmtree(library / "lib")
    (library / place).parent.mkdir()
    (library / place).write_bytes(b"!<arch>\n")
    assert find_cmsis_nn(str(library)).archive == library / place


# --- which release ---------------------------------------------------------------------------------------------------


def test_a_pack_says_its_release(tmp_path):
    assert find_cmsis_nn(str(tree.pack(tmp_path / "p", "8.0.0"))).title == "Arm CMSIS-NN 8.0.0"


def test_a_project_may_say_its_version(tmp_path):
    assert find_cmsis_nn(str(tree.checkout(tmp_path / "c", "7.2.3"))).title == "Arm CMSIS-NN 7.2.3"


def test_a_version_macro(library):
    (library / "include" / "arm_nn_version.h").write_text('#define ARM_NN_VERSION_STRING "7.4.0"\n')
    assert find_cmsis_nn(str(library)).version == "7.4.0"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_checkout_is_named_by_its_tag(tmp_path):
    folder = tree.checkout(tmp_path / "c")
    # As in Arm's repository, whose description has no release until a pack is made of it.
    (folder / "ARM.CMSIS-NN.pdsc").write_text('<release version="0.0.0">')
    assert find_cmsis_nn(str(folder)).version == ""
    who = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v7.0.0"]):
        subprocess.run(["git", *words], cwd=folder, check=True, env=os.environ | who)
    assert find_cmsis_nn(str(folder)).version == "7.0.0"
    subprocess.run(["git", "commit", "-qm", "y", "--allow-empty"], cwd=folder, check=True, env=os.environ | who)
    assert find_cmsis_nn(str(folder)).version.startswith("7.0.0-1-g")


def test_without_a_release_the_header_says_which_it_is(library):
    found = find_cmsis_nn(str(library))
    assert (found.version, found.revision) == ("", "V.18.0.0")
    assert found.title == "Arm CMSIS-NN (header V.18.0.0)"


def test_what_a_file_says_of_its_version_never_reaches_c_unsanitised(tmp_path):
    folder = tree.pack(tmp_path / "p", "7.0.0\\n#error")
    assert find_cmsis_nn(str(folder)).title == "Arm CMSIS-NN 6.0.0"  # the next release it lists


@pytest.mark.parametrize(("version", "warns"), [("7.0.0", False), ("8.0.0", False), ("8.1.0", True), ("9.0.0", True)])
def test_a_release_that_nobody_looked_at(tmp_path, version, warns):
    warning = find_cmsis_nn(str(tree.pack(tmp_path / "p", version))).warning
    assert bool(warning) is warns
    assert not warns or f"Arm CMSIS-NN {version} is newer than 8.0.0" in warning


def test_a_release_that_is_too_old(library):
    shutil.rmtree(library / "include")
    tree.headers(library / "include", "V.16.0.0", leave_out=NEW_IN_7)
    with pytest.raises(ToolError, match=r"\(header V\.16\.0\.0\) is too old: it lacks arm_batch_matmul_s8, ") as caught:
        find_cmsis_nn(str(library))
    assert "7.0.0 is the first release that has all functions" in caught.value.what
    assert caught.value.where == str(library / "include" / "arm_nnfunctions.h")


def test_a_fork_with_other_parameters(library):
    """One known fork gives convolutions another context."""
    header = library / "include" / "arm_nnfunctions.h"
    text = header.read_text().replace(
        "arm_convolve_wrapper_s8(const cmsis_nn_context * argument_0,",
        "arm_convolve_wrapper_s8(const cmsis_nn_context * argument_0, const cmsis_nn_context *weight_sum_ctx,",
    )
    header.write_text(text)
    with pytest.raises(ToolError, match="arm_convolve_wrapper_s8 takes other parameters"):
        find_cmsis_nn(str(library))


# --- building by hand ------------------------------------------------------------------------------------------------


def by_hand(project, *definitions, variable=None):
    """Configures and builds with plain CMake; what went wrong, empty when nothing did."""
    environment = {"PATH": "/usr/bin:/bin"} | ({"CMSIS_NN_PATH": str(variable)} if variable else {})
    cmake, ninja = find(CMAKE), find(NINJA)
    configure = [cmake, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", "-S", ".", "-B", "build", *definitions]
    for command in (configure, [cmake, "--build", "build"]):
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stdout + done.stderr
    return ""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return tree.checkout(tmp_path_factory.mktemp("copy") / "cmsis-nn")


def rendered(folder, copy, board="host"):
    plan = golden_plan("dae", board)
    library = KernelLibrary("Arm CMSIS-NN 7.0.0", copy)
    render(replace(plan, library=library), folder)
    return folder


def test_a_project_builds_by_hand_with_the_copy_it_was_rendered_for(tmp_path, copy):
    project = rendered(tmp_path / "p", copy)
    assert by_hand(project) == ""
    assert (project / "build" / "runner").is_file()
    assert (project / "cmake" / "FindCmsisNN.cmake").is_file()


@pytest.mark.parametrize("how", ["definition", "environment"])
def test_a_project_builds_by_hand_elsewhere(tmp_path, copy, how):
    project = rendered(tmp_path / "p", Path("/nowhere"))
    problem = by_hand(project)
    assert "CMSIS_NN_PATH is '/nowhere'" in problem
    assert "release 7.0.0 or newer" in " ".join(problem.split())
    words = (f"-DCMSIS_NN_PATH={copy}",) if how == "definition" else ()
    shutil.rmtree(project / "build")
    assert by_hand(project, *words, variable=copy if how == "environment" else None) == ""


def test_by_hand_its_code_can_run_from_ram(tmp_path, copy):
    project = rendered(tmp_path / "p", copy, "qemu-m33")
    assert by_hand(project, "-DDEPLOY_KERNELS_IN_RAM=ON") == ""
    listed = subprocess.run(
        ["arm-none-eabi-nm", project / "build" / "runner.elf"], capture_output=True, text=True, check=True
    ).stdout
    places = {line.split()[-1]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}
    ram = load_board("qemu-m33").ram
    for name in ("arm_fully_connected_s8", "standin_arm_fully_connected_s8", "deploy_quantize_f32_s8"):
        assert ram.origin <= places[name] < ram.origin + ram.size, name


def test_a_library_is_built_once(tmp_path, copy, monkeypatch):
    monkeypatch.setenv("DEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    said = []
    for name in ("a", "b"):
        build(rendered(tmp_path / name, copy), load_board("host"), progress=said.append)
    title = "Arm CMSIS-NN (header V.18.0.0)"
    assert said == ["compiling the kernels (once)", f"compiling {title} (once)", *["compiling the runner"] * 2]


def test_a_copy_that_is_gone_when_building(tmp_path):
    project = rendered(tmp_path / "p", tmp_path / "gone")
    with pytest.raises(ToolError, match="there is no such folder"):
        build(project, load_board("host"))
