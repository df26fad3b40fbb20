"""The entry of `pocketgrad`: finds the command, runs it, and turns errors into one line and a code.

Light on purpose: a command's module may import only argparse and the base layer at its top.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

from pocketgrad.base.errors import PocketgradError, SettingError, UnknownNameError
from pocketgrad.cli import COMMANDS

FAILED, INTERRUPTED = 2, 130


class Command(Protocol):
    """What a module in `cli` holds to be a command."""

    NAME: str
    HELP: str
    EXAMPLE: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


class Parser(argparse.ArgumentParser):
    """argparse, with its complaints raised as our errors: one line, or JSON."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing usage and leaving."""
        raise SettingError(f"{message}; see `{self.prog} --help`")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        print(f"pocketgrad {metadata.version('pocketgrad')}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands, also walked by whoever documents them."""
    parser = Parser(prog="pocketgrad", description="Train neural networks on this very device.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"pocketgrad.cli.{name.replace('-', '_')}")
        command = cast(Command, module)  # a module is checked against the protocol by a test
        child = commands.add_parser(
            command.NAME,
            help=command.HELP,
            description=f"{command.HELP[0].upper()}{command.HELP[1:]}.",
            epilog=f"example:\n  {command.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(child)
        child.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it went well, 2 after an error, 130 after Ctrl-C."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
            raise UnknownNameError("command", argv[0], COMMANDS)
        args = build_parser().parse_args(argv)
        code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone; so that the interpreter's last flush is silent:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"interrupted {interrupt}".strip(), file=sys.stderr)
        return INTERRUPTED
    except (PocketgradError, OSError) as error:
        _complain(error, as_json="--json" in argv)
        return FAILED
    return code


def _complain(error: Exception, as_json: bool) -> None:
    text = " ".join(str(error).split())
    if as_json:
        print(json.dumps({"error": {"type": type(error).__name__, "message": text}}))
    else:
        print(f"error: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
