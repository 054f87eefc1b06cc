"""Made-up installations of ExecuTorch, laid out as a real one is.

`host_installation` is half real: the runtime is the Python package's, the operators run on this project's kernels.
`board_installation` has a stand-in for the runtime. `empty_installation` can be read, and not linked.
"""

import importlib.util
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.board import Board
from toolkit.building.tools import ARM_GCC, HOST_GCC, require
from toolkit.resources import resource

SOURCES = Path(__file__).parent / "installation"
CONFIG = "lib/cmake/ExecuTorch/executorch-config.cmake"
GOLDEN_OPERATORS = (
    "cortex_m::dequantize_per_tensor.out",
    "cortex_m::pad.out",
    "cortex_m::quantize_per_tensor.out",
    "cortex_m::quantized_add.out",
    "cortex_m::quantized_avg_pool2d.out",
    "cortex_m::quantized_conv2d.out",
    "cortex_m::quantized_depthwise_conv2d.out",
    "cortex_m::quantized_linear.out",
    "dim_order_ops::_clone_dim_order.out",
)
"""What the golden models call."""


@dataclass(frozen=True)
class Compiler:
    """Compiles for a board and packs static libraries."""

    board: Board
    wheel: Path

    def objects(self, sources: Sequence[Path], folder: Path, *flags: str) -> list[Path]:
        """Compile C and C++; the object files, in a folder."""
        include = self.wheel / "include"
        c10 = include / "executorch" / "runtime" / "core" / "portable_type" / "c10"
        headers = ["-isystem", str(include), "-isystem", str(c10), "-DC10_USING_CUSTOM_GENERATED_MACROS"]
        common = [*self.board.flags, "-O2", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections"]
        folder.mkdir(parents=True, exist_ok=True)
        made = []
        for source in sources:
            own = ["-std=c++17", "-fno-exceptions", "-fno-rtti", *headers] if source.suffix == ".cpp" else ["-std=c11"]
            made.append(folder / f"{source.stem}.o")
            command = [self._tool("g++" if source.suffix == ".cpp" else "gcc"), *common, *own, *flags]
            subprocess.run([*command, "-c", str(source), "-o", str(made[-1])], check=True)
        return made

    def library(self, path: Path, objects: Sequence[Path]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([self._tool("ar"), "rcs", str(path), *map(str, objects)], check=True)

    def _tool(self, name: str) -> str:
        if self.board.toolchain == "host":
            return str(require(HOST_GCC)) if name == "g++" else name
        return str(require(ARM_GCC).with_name(f"arm-none-eabi-{name}"))


def package() -> Path:
    """Folder of the installed Python package: public headers, and the runtime as a library of this computer."""
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def host_installation(folder: Path, board: Board, wheel: Path, *flags: str) -> Path:
    """An installation for this computer that computes the golden models; `flags` compile its operators."""
    compiler = Compiler(board, wheel)
    kernels = resource("firmware") / "kernels"
    _headers(folder, wheel)
    sources = sorted((kernels / "source").glob("*.c"))
    include = ("-I", str(kernels / "include"), "-I", str(kernels / "source"))
    compiler.library(folder / "lib/libcmsis-nn.a", compiler.objects(sources, folder / "objects/kernels", *include))
    operators = compiler.objects([SOURCES / "operators.cpp"], folder / "objects", *include, *flags)
    compiler.library(folder / "lib/libcortex_m_ops_lib.a", operators)
    _core_without_a_runtime(compiler, folder)
    _write_config(folder, core=f'SHARED "{wheel / "lib" / "libexecutorch.so"}"')
    return folder


def board_installation(folder: Path, board: Board, wheel: Path, operators: Sequence[str] = GOLDEN_OPERATORS) -> Path:
    """An installation for a board that answers what it is told to, see `installation/runtime.cpp`."""
    compiler = Compiler(board, wheel)
    _headers(folder, wheel)
    core = compiler.objects([SOURCES / "runtime.cpp"], folder / "objects")
    compiler.library(folder / "lib/libexecutorch_core.a", core)
    _register(compiler, folder, "cortex_m_ops_lib", operators)
    compiler.library(folder / "lib/libcmsis-nn.a", compiler.objects([_nothing(folder)], folder / "objects"))
    _write_config(folder, core='STATIC "${root}/lib/libexecutorch_core.a"')
    return folder


def empty_installation(
    folder: Path, board: Board, wheel: Path, libraries: Mapping[str, Sequence[str]], registry: int | None = None
) -> Path:
    """An installation of which only the registered names, and the bytes of the table of kernels, can be read."""
    compiler = Compiler(board, wheel)
    _headers(folder, wheel)
    _core_without_a_runtime(compiler, folder, registry)
    for name, operators in libraries.items():
        source = folder / f"{name}.c"
        names = ", ".join(f'"{operator}"' for operator in operators)
        source.write_text(f"extern const char* const names[];\nconst char* const names[] = {{{names}}};\n")
        compiler.library(folder / f"lib/lib{name}.a", compiler.objects([source], folder / "objects", "-g"))
    return folder


def _headers(folder: Path, wheel: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "include").symlink_to(wheel / "include")


def _nothing(folder: Path, text: str = "extern int nothing;\nint nothing;\n") -> Path:
    source = folder / "nothing.c"
    source.write_text(text)
    return source


def _core_without_a_runtime(compiler: Compiler, folder: Path, registry: int | None = None) -> None:
    text = "extern int nothing;\nint nothing;\n"
    if registry is not None:
        text += f"extern char registered_kernels_data[];\nchar registered_kernels_data[{registry}];\n"
    objects = compiler.objects([_nothing(folder, text)], folder / "objects")
    compiler.library(folder / "lib/libexecutorch_core.a", objects)


def _register(compiler: Compiler, folder: Path, name: str, operators: Sequence[str]) -> None:
    """A library that registers operators as generated code does: by a constructor of a static object."""
    source = folder / f"{name}.cpp"
    lines = "\n".join(
        f'    Kernel("{operator}", [](KernelRuntimeContext&, Span<EValue*>) {{}}),' for operator in operators
    )
    source.write_text(
        "#include <executorch/runtime/kernel/kernel_runtime_context.h>\n"
        "#include <executorch/runtime/kernel/operator_registry.h>\n"
        "using namespace executorch::runtime;\n"
        "namespace {\n"
        f"const Kernel kernels[] = {{\n{lines}\n}};\n"
        "const Error registered = register_kernels({kernels, sizeof kernels / sizeof *kernels});\n"
        "}\n"
    )
    compiler.library(folder / f"lib/lib{name}.a", compiler.objects([source], folder / "objects", "-g"))


def _write_config(folder: Path, core: str) -> None:
    """The targets that an installed ExecuTorch names, with what they carry."""
    kind, location = core.split(" ", 1)
    libraries = sorted(path.stem.removeprefix("lib") for path in (folder / "lib").glob("lib*.a"))
    lines = [
        'get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)',
        'set(EXECUTORCH_INCLUDE_DIRS "${root}/include" "${root}/include/executorch/runtime/core/portable_type/c10")',
        f"add_library(executorch_core {kind} IMPORTED)",
        f"set_target_properties(executorch_core PROPERTIES IMPORTED_LOCATION {location}",
        '    INTERFACE_COMPILE_OPTIONS "-fPIC;--no-such-option")',  # a runner must not take them over
    ]
    for name in libraries:
        if name == "executorch_core":
            continue
        needs = "executorch_core" if name == "cmsis-nn" else "cmsis-nn;executorch_core"
        lines += [
            f"add_library({name} STATIC IMPORTED)",
            f'set_target_properties({name} PROPERTIES IMPORTED_LOCATION "${{root}}/lib/lib{name}.a"',
            f'    INTERFACE_LINK_LIBRARIES "{needs}")',
        ]
    config = folder / CONFIG
    config.parent.mkdir(parents=True)
    config.write_text("\n".join(lines) + "\n")
