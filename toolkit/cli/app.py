"""The commands of `deploy`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape

from toolkit import __version__
from toolkit.errors import DeployError

Command = TypeVar("Command", bound=Callable[..., Any])

_EPILOG = "Each command explains itself: deploy COMMAND --help."


class _MainContext(click.Context):
    @property
    def command_path(self) -> str:
        return "deploy"


class _MainJob(click.Command):
    """The main job, whose name nobody types."""

    context_class = _MainContext


class _DeployGroup(click.Group):
    """A group whose words are the main job's when they do not begin with the name of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h", "--version")):
            args = ["deploy", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("deploy", "[MODEL] --board BOARD [OPTIONS]")
        formatter.write_usage("deploy", "COMMAND [ARGS]...")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The main job's options first: they are what most people look for here."""
        main_job = self.commands["deploy"]
        records = [parameter.get_help_record(ctx) for parameter in main_job.get_params(ctx)]
        shown = [
            record for record in records if record and record[0].startswith("-") and not record[0].startswith("-h,")
        ]
        with formatter.section("Options of the main job"):
            formatter.write_dl(shown)
        super().format_options(ctx, formatter)


@click.group(
    cls=_DeployGroup,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="deploy")
def cli() -> None:
    """Bring a trained PyTorch model onto a microcontroller, and prove that it answers right.

    MODEL is a Python file (path.py), a module (package.module), either with :attribute, an exported program (.pt2) or a
    lowered one (.pte). Without MODEL, `deploy.toml` in the current folder names it; without that, the bundled example
    (handwritten digits) is taken.
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit status. Errors of ours are printed for people, Ctrl-C ends quietly."""
    console = Console(stderr=True)
    try:
        result = cli.main(list(arguments), prog_name="deploy", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except DeployError as error:
        where = f"{error.where}: " if error.where else ""
        console.print(f"[bold red]error:[/bold red] {escape(where + error.what)}", highlight=False, soft_wrap=True)
        if error.hint:
            console.print(f"  {escape(error.hint)}", highlight=False, soft_wrap=True)
        return 1
    except (KeyboardInterrupt, click.exceptions.Abort):
        console.print("interrupted")
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away; that is not an error
        return 1


def board_option(command: Command) -> Command:
    return click.option("--board", "-b", metavar="BOARD", help="Board to work for (see `deploy boards`).")(command)


def model_argument(command: Command) -> Command:
    return click.argument("model", required=False)(command)


def out_option(command: Command) -> Command:
    return click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of the rendered project.  [default: build/MODEL-BOARD]",
    )(command)


def calibration_option(command: Command) -> Command:
    return click.option(
        "--random-calibration",
        type=click.IntRange(min=1),
        metavar="N",
        help="Calibrate with N random inputs. Numbers will be poor: for trying out only.",
    )(command)


def place_option(command: Command) -> Command:
    return click.option(
        "--place",
        type=click.Choice(["auto", "ram", "flash"]),
        default="auto",
        show_default=True,
        help="Where kernels and weights are kept: RAM as far as they fit where flash is slow, all in RAM, or in flash.",
    )(command)


def kernels_options(command: Command) -> Command:
    """Options that say which library computes the layers."""
    command = click.option(
        "--cmsis-nn",
        metavar="PATH",
        help="Arm's CMSIS-NN: a checkout, a CMSIS-Pack's folder or an installed library.  [default: $CMSIS_NN_PATH]",
    )(command)
    return click.option(
        "--kernels",
        type=click.Choice(["auto", "deploy", "cmsis-nn"]),
        default="auto",
        show_default=True,
        help="What computes the layers: Arm's CMSIS-NN where a copy is named, else our kernels; or one of them.",
    )(command)


def engine_options(command: Command) -> Command:
    """Options that say what runs the program on the board."""
    command = click.option(
        "--executorch",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="PATH",
        help="Where an ExecuTorch built for the board is installed.  [default: $EXECUTORCH_PATH]",
    )(command)
    return click.option(
        "--engine",
        type=click.Choice(["deploy", "executorch"]),
        default="deploy",
        show_default=True,
        help="What runs the program: C++ compiled from it, or ExecuTorch's interpreter (see docs/engines.md).",
    )(command)


def virtual_option(command: Command) -> Command:
    return click.option("--virtual", is_flag=True, help="Use the board's virtual twin: the same image, no hardware.")(
        command
    )


def which_board_options(command: Command) -> Command:
    """Options that say which of several real boards is meant."""
    command = click.option("--serial-number", metavar="TEXT", help="USB serial number of the board.")(command)
    return click.option(
        "--port", metavar="PORT", help="Serial port of the board; socket:// and rfc2217:// for one flashed elsewhere."
    )(command)


def misbehave_option(command: Command) -> Command:
    return click.option(
        "--misbehave",
        multiple=True,
        metavar="FAULT",
        help="Make the virtual twin misbehave (see docs/virtual-pico2.md); may be repeated.",
    )(command)


def sanitize_option(command: Command) -> Command:
    return click.option(
        "--sanitize", is_flag=True, help="Build with address and undefined-behaviour sanitizers (board `host`)."
    )(command)


@cli.command("deploy", cls=_MainJob, hidden=True)
@model_argument
@board_option
@click.option(
    "--input",
    "input_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run this input (.npy, .npz) instead of the evaluation set.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save what the device answered (.npz: output0, …).",
)
@click.option(
    "--layers",
    is_flag=True,
    help="Also compare every layer's result for the first sample; --output saves them as 00, 01, …",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object on standard output.")
@virtual_option
@which_board_options
@place_option
@kernels_options
@engine_options
@out_option
@calibration_option
@sanitize_option
@misbehave_option
def deploy_command(**words: Any) -> int:
    """Lower, plan, render, build, flash and verify a model.

    The exit status is 0 only when every output byte of the device was compared and found right.
    """
    from toolkit.cli.deploying import Words, deploy

    return deploy(Words(**words))


@cli.command("export")
@model_argument
@board_option
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: MODEL.pte]"
)
@calibration_option
def export_command(**words: Any) -> None:
    """Quantise and lower a model to a .pte for a board's core."""
    from toolkit.cli.steps import export

    export(**words)


@cli.command("inspect")
@model_argument
@board_option
@calibration_option
def inspect_command(**words: Any) -> None:
    """Show operators, tensors, constants and memory of a model."""
    from toolkit.cli.inspecting import inspect

    inspect(**words)


@cli.command("render")
@model_argument
@board_option
@place_option
@kernels_options
@engine_options
@out_option
@calibration_option
def render_command(**words: Any) -> None:
    """Write the C++ project of a model; it builds without this toolkit."""
    from toolkit.cli.steps import render

    render(**words)


@cli.command("sketch")
@model_argument
@board_option
@click.option(
    "--out",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write; its name becomes the sketch's.  [default: build/MODEL-BOARD]",
)
@click.option("--library", is_flag=True, help="Write an Arduino library, and its .zip beside the folder.")
@click.option(
    "--input-type",
    type=click.Choice(["float", "int8"]),
    help="What the sketch writes and reads: values, or quantised numbers.  [default: what the model takes]",
)
@engine_options
@calibration_option
def sketch_command(**words: Any) -> None:
    """Write a model as a sketch folder for the Arduino IDE. An .ino that you changed is kept.

    With --engine executorch the folder is for arduino-cli: the IDE by itself does not find ExecuTorch.
    """
    from toolkit.cli.sketching import sketch

    sketch(**words)


@cli.command("build")
@model_argument
@board_option
@place_option
@kernels_options
@engine_options
@out_option
@calibration_option
@sanitize_option
def build_command(**words: Any) -> None:
    """Render and build a model. MODEL may also be the folder of a rendered project."""
    from toolkit.cli.steps import build

    build(**words)


@cli.command("flash")
@click.argument("project", type=click.Path(exists=True, file_okay=False, path_type=Path))
@virtual_option
@which_board_options
def flash_command(**words: Any) -> None:
    """Bring a built project onto its board. A virtual board runs, and shows its port, until Ctrl-C."""
    from toolkit.cli.steps import flash_project

    flash_project(**words)


@cli.command("run")
@click.argument("port")
@click.option(
    "--input",
    "input_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Input to run (.npy, .npz); without it the board says what it runs.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Save what the device answered (.npz).")
def run_command(**words: Any) -> None:
    """Talk to an already flashed board on PORT (a device, socket:// or rfc2217://)."""
    from toolkit.cli.steps import run_port

    run_port(**words)


@cli.command("boards")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
def boards_command(as_json: bool) -> None:
    """List the boards."""
    from toolkit.cli.listing import boards

    boards(as_json)


@cli.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
@click.option("--fix", is_flag=True, help="First fetch what can be fetched: the Pico SDK, from Debian's packages.")
def doctor_command(as_json: bool, fix: bool) -> int:
    """Check the tools: where each is, which version, or how to get it."""
    from toolkit.cli.listing import doctor

    return doctor(as_json, fix)
