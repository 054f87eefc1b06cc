"""One line per stage while a job runs, on standard error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.status import Status


@dataclass
class Stage:
    """What a running stage says of itself.

    Attributes:
        detail: shown behind the stage's name when it is done.
    """

    _status: Status
    _name: str
    detail: str = ""

    def doing(self, what: str) -> None:
        """Show what the stage is busy with."""
        self._status.update(f"{self._name:<7} {escape(what)}")

    def say(self, what: str) -> None:
        """Show it and keep a line of it: something a person may have to act on."""
        self.doing(what)
        self._status.console.print(f"  {escape(what)}", highlight=False)


@dataclass
class Stages:
    """Shows stages one after the other and keeps the seconds each took."""

    console: Console
    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        started = time.monotonic()
        with self.console.status(f"{name:<7}", spinner="dots") as status:
            stage = Stage(status, name)
            try:
                yield stage
            except BaseException:
                self.console.print(f"[red]✗[/red] {name}")
                raise
        took = time.monotonic() - started
        self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 3)
        self.console.print(f"[green]✓[/green] {name:<7} {took:6.1f} s  {escape(stage.detail)}", highlight=False)

    def warn(self, text: str) -> None:
        """A warning that a person should not overlook."""
        self.console.print(f"[bold yellow]warning:[/bold yellow] {escape(text)}", highlight=False)
