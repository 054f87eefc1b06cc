"""The one family of errors that reaches a user.

Every error says what happened, where, and what to do next. Anything else that escapes the toolkit is a bug of ours and
shows its traceback.
"""

from __future__ import annotations


class DeployError(Exception):
    """Something the user can act on.

    Args:
        what: one sentence, what happened.
        where: file, operator, layer, board or port it happened at; empty when `what` says it.
        hint: what to do next; empty when there is nothing to suggest.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.hint}" if self.hint else text


class UsageError(DeployError):
    """The words of the command line, `deploy.toml` or a board file do not make sense."""


class ModelError(DeployError):
    """The user's model file, its inputs or its evaluation set is not what the contract asks for."""


class LoweringError(DeployError):
    """The model could not be quantised or lowered to the Cortex-M operators."""


class ProgramError(DeployError):
    """A `.pte` is truncated, corrupt, foreign, or holds something this toolkit does not know."""


class PlanError(DeployError):
    """The program cannot run on this board: an operator has no kernel, or it does not fit."""


class ToolError(DeployError):
    """A program this step needs is missing, too old, or failed."""


class BuildError(ToolError):
    """The compiler or the linker refused the rendered project."""


class FlashError(DeployError):
    """The image did not get onto the board."""


class DeviceError(DeployError):
    """The board does not answer, or answers something that is not the protocol."""


class VerificationError(DeployError):
    """The device answered, and its bytes are not the right ones."""
