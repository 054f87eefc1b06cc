"""What a C header declares, as far as a caller can tell: types of results and parameters, without names."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DECLARATION = re.compile(r"\b(\w+)\s+(arm_\w+)\s*\(([^()]*)\)\s*;")
_QUALIFIERS = ("const", "volatile", "restrict", "__restrict")


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function's type: what it returns, and the types of its parameters."""

    returns: str
    parameters: tuple[str, ...]


def read_prototypes(header: str) -> dict[str, Prototype]:
    """Every function `arm_…` that a header declares.

    Comments, preprocessor lines, the names of parameters and qualifiers of values passed are left out: they make no
    difference to a caller.
    """
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header, flags=re.DOTALL)
    text = re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text)
    return {
        match.group(2): Prototype(match.group(1), tuple(_types(match.group(3))))
        for match in _DECLARATION.finditer(text)
    }


def _types(parameters: str) -> list[str]:
    types = [_type(parameter) for parameter in parameters.split(",")]
    return [] if types == ["void"] else types


def _type(parameter: str) -> str:
    """`const int8_t *input` is `const int8_t *`; `const int32_t size` is `int32_t`."""
    words = re.findall(r"\w+|\*", parameter)
    values = [word for word in words if word not in _QUALIFIERS]
    if len(values) > 1 and values[-1] != "*":
        words.pop()  # the name
    pointer = len(words) - words[::-1].index("*") if "*" in words else 0
    pointed = [word for word in words[:pointer] if word == "const" or word not in _QUALIFIERS]
    return " ".join(pointed or [word for word in words if word not in _QUALIFIERS])
