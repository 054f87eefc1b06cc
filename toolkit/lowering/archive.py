"""Models that come as a `.pt2`: an archive written by `torch.export.save`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.errors import ModelError
from toolkit.lowering.quiet import quiet
from toolkit.lowering.source import first_lines, shown

_EXPORT_AGAIN = "Export it with torch.export.export(model.eval(), inputs) and save that without further steps."


def load_archive(path: Path) -> tuple[Any, tuple[Any, ...] | None]:
    """The module of an exported program, and its example inputs where the archive has them.

    Returns:
        A `torch.fx.GraphModule`, and a tuple of tensors or None.

    Raises:
        ModelError: the archive is damaged, quantised or decomposed already, exported for training, or its program takes
            keyword arguments.
    """
    import torch

    with quiet():
        try:
            exported = torch.export.load(str(path))
        except Exception as error:
            raise ModelError(
                f"this is not an exported program: {first_lines(str(error)) or type(error).__name__}",
                where=shown(path),
                hint="Write it with torch.export.save(torch.export.export(model.eval(), inputs), path).",
            ) from error
        _check_program(exported, shown(path))
        args, kwargs = exported.example_inputs or (None, {})
        if kwargs:
            raise ModelError(
                f"the program takes keyword arguments ({', '.join(kwargs)})",
                where=shown(path),
                hint="Export it with positional inputs.",
            )
        return exported.module(check_guards=False), args


def archive_placeholders(module: Any) -> tuple[Any, ...]:
    """Tensors of zeros with the shapes the program was exported for, to stand in for absent example inputs."""
    import torch

    values = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    return tuple(torch.zeros([int(size) for size in value.shape], dtype=value.dtype) for value in values)


def _check_program(exported: Any, where: str) -> None:
    for node in exported.graph.nodes:
        if node.op != "call_function":
            continue
        name = str(node.target)
        if "quantize" in name:
            raise ModelError("the program is quantised already", where=where, hint=_EXPORT_AGAIN)
        if name in ("aten.convolution.default", "aten.addmm.default") or name.startswith("aten._native_batch_norm"):
            raise ModelError(
                f"the program is decomposed: it holds {name.removesuffix('.default')}, which is no longer a layer",
                where=where,
                hint=_EXPORT_AGAIN,
            )
        training = {"aten.dropout.default": 2, "aten.batch_norm.default": 5}.get(name)
        if training is not None and node.args[training]:
            raise ModelError("the program was exported in training mode", where=where, hint=_EXPORT_AGAIN)
