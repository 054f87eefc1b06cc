"""What a runner's status says when an inference failed, in words.

A runner of this toolkit's own engine names the layer and its kernel's status. A runner with ExecuTorch's interpreter
has one layer; its status is ExecuTorch's error code (`runtime/core/error.h` of release 1.5), and in the highest byte
what was being done (`firmware/engines/executorch/engine/interpreter.h`).
"""

from __future__ import annotations

from dataclasses import dataclass

INTERPRETER = "ExecuTorch"
"""What the names of kernels begin with in a runner that has the interpreter."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed inference.

    Attributes:
        what: one sentence.
        hint: what to do, empty when there is nothing particular.
    """

    what: str
    hint: str = ""


_STAGES = {
    1: "opening the program",
    2: "loading the method",
    3: "handing over an input",
    4: "handing over an output",
    5: "running the model",
    6: "looking for an input or an output where the program said it would be",
    7: "something that it could not go on with: one of its own checks failed",
}
_STOPPED = 7
"""The stage after which the interpreter is not used again."""

_RENDER_AGAIN = "Render and build again: deploy build MODEL --engine executorch."
_BUILD_EXECUTORCH = "Build ExecuTorch with the program's operators (docs/engines.md), and this runner with it."
_MORE_MEMORY = (
    "The pools are computed for release 1.5: with another one, or with kernels that want temporary memory, enlarge "
    "PROGRAM_METHOD_POOL or PROGRAM_TEMPORARY_POOL in program.h and build the project by hand."
)
_KERNEL_LOG = "An ExecuTorch that is built with EXECUTORCH_ENABLE_LOGGING=ON says on the serial line what went wrong."
_DELEGATE = "Lower the model without a partitioner: this runner has no delegates."

ERRORS: dict[int, tuple[str, str, str]] = {
    0x01: ("Internal", "an error inside ExecuTorch or in a kernel", _KERNEL_LOG),
    0x02: ("InvalidState", "something was asked for that it is not ready for", _RENDER_AGAIN),
    0x03: ("EndOfMethod", "the method has no more steps", _RENDER_AGAIN),
    0x04: ("AlreadyLoaded", "something was loaded twice", _RENDER_AGAIN),
    0x10: ("NotSupported", "an operation is not supported here", _KERNEL_LOG),
    0x11: ("NotImplemented", "an operation is not implemented", _KERNEL_LOG),
    0x12: ("InvalidArgument", "an argument of a kernel or of the runtime does not fit", _KERNEL_LOG),
    0x13: ("InvalidType", "a value is of another kind than an operation takes", _KERNEL_LOG),
    0x14: ("OperatorMissing", "an operator of the program is not registered in this image", _BUILD_EXECUTORCH),
    0x15: (
        "RegistrationExceedingMaxKernels",
        "more kernels are registered than the runtime has room for",
        "Build ExecuTorch with a larger MAX_KERNEL_NUM, or with fewer operators.",
    ),
    0x16: (
        "RegistrationAlreadyRegistered",
        "a kernel is registered twice",
        "Link one library that registers it: see EXECUTORCH_OPERATOR_LIBRARIES in the project's CMakeLists.txt.",
    ),
    0x20: ("NotFound", "the program refers to something that is not there", _RENDER_AGAIN),
    0x21: ("MemoryAllocationFailed", "a pool of memory is too small", _MORE_MEMORY),
    0x22: ("AccessFailed", "the program could not be read", _RENDER_AGAIN),
    0x23: (
        "InvalidProgram",
        "the program is damaged, or of a version that this ExecuTorch does not know",
        _RENDER_AGAIN,
    ),
    0x24: ("InvalidExternalData", "data outside of the program is damaged", "Export without external constants."),
    0x25: ("OutOfResources", "something that it needs is used up", _MORE_MEMORY),
    0x30: ("DelegateInvalidCompatibility", "a delegate's data is of an incompatible version", _DELEGATE),
    0x31: ("DelegateMemoryAllocationFailed", "a delegate did not get its memory", _DELEGATE),
    0x32: ("DelegateInvalidHandle", "a delegate was called with an invalid handle", _DELEGATE),
}
"""Name, meaning and advice of every error code."""


_ARGUMENT_ERROR = -1
_REFUSED = (
    "This release of CMSIS-NN refuses the layer, or asks for more working memory than is planned for it. "
    "`--kernels deploy` does without it; please report the release."
)


def explain(kernels: str, layer: int, status: int) -> Failure:
    """A failed inference in words.

    Args:
        kernels: what the board says its kernels are.
        layer: number of the layer that failed.
        status: as the board sent it.
    """
    if not kernels.startswith(INTERPRETER):
        hint = _REFUSED if kernels.startswith("Arm") and status == _ARGUMENT_ERROR else ""
        return Failure(f"the kernel of layer {layer:02d} failed with status {status}", hint)
    code = status & 0xFFFFFF
    stage = (status & 0xFFFFFFFF) >> 24
    doing = _STAGES.get(stage, f"stage {stage}")
    name, meaning, hint = ERRORS.get(code, ("unknown", "an error code that this toolkit does not know", ""))
    if stage == _STOPPED:
        return Failure(f"ExecuTorch met {doing}", f"{_KERNEL_LOG} Reset the board before the next run.")
    return Failure(f"ExecuTorch failed while {doing}: {meaning} ({name}, 0x{code:02x})", hint)
