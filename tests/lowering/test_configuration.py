"""There is one way to configure a lowering, and nothing in the tree goes past it.

A hand-written `EdgeCompileConfig` drops the list of operators that the Cortex-M passes need; a pass manager without a
target lowers for a Cortex-M55. Neither fails: the program is slower, or wrong on the board.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("toolkit", "examples", "tests", "benchmarks")
LOWERING = ("to_edge", "to_edge_transform_and_lower", "EdgeProgramManager")


def name_of(node):
    """The last name of a call's function: `exir.to_edge(...)` is `to_edge`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def complaints(source):
    """Line and reason of every call that configures a lowering by hand."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node.func)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if name == "EdgeCompileConfig":
            found.append((node.lineno, "EdgeCompileConfig by hand"))
        if name == "CortexMTargetConfig":
            found.append((node.lineno, "a target that is not the board's"))
        if name == "CortexMPassManager":
            target = given.get("target_config")
            if target is None or (isinstance(target, ast.Constant) and target.value is None):
                found.append((node.lineno, "CortexMPassManager without a target"))
        if name in LOWERING:
            config = given.get("compile_config")
            if not isinstance(config, ast.Call) or name_of(config.func) != "cortex_m_edge_compile_config":
                found.append((node.lineno, f"{name} without cortex_m_edge_compile_config()"))
    return found


@pytest.mark.parametrize(
    "source",
    [
        "EdgeCompileConfig()",
        "exir.EdgeCompileConfig(_check_ir_validity=False)",
        "CortexMPassManager(program)",
        "CortexMPassManager(program, target_config=None, use_explicit_layout=True)",
        "passes.CortexMPassManager(program, use_explicit_layout=True)",
        "CortexMTargetConfig(cpu=CortexM.M55)",
        "to_edge(program)",
        "to_edge(program, compile_config=config)",
        "to_edge_transform_and_lower(program)",
    ],
)
def test_what_is_refused(source):
    assert len(complaints(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "to_edge(program, compile_config=cortex_m_edge_compile_config())",
        "CortexMPassManager(program, target_config=target, use_explicit_layout=True)",
        "CortexMTargetConfig.from_target_string(cpu)",
    ],
)
def test_what_is_right(source):
    assert complaints(source) == []


def test_the_tree_has_one_configuration():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert ROOT / "toolkit" / "lowering" / "lower.py" in files
    found = {str(path.relative_to(ROOT)): complaints(path.read_text(encoding="utf-8")) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}
