"""Writes the manual page beside this file, from the help of the command line and the declared settings."""

from collections.abc import Iterable, Iterator
from importlib import metadata
from inspect import cleandoc
from pathlib import Path

import click

from mahasiswa.commands.cli import main
from mahasiswa.settings import Settings

PREFORMATTED = "\b\n"
"""click's mark for a paragraph that is not wrapped."""


def page() -> Iterator[str]:
    """Yield the lines of the page, in the language of man(7)."""
    yield f'.TH MAHASISWA 1 "" "mahasiswa {metadata.version("mahasiswa")}"'
    summary, _, *description = paragraphs(main)
    yield from (".SH NAME", f"mahasiswa \\- {summary[0].lower()}{summary[1:].rstrip('.')}")
    yield from (
        ".SH SYNOPSIS",
        "\\fBmahasiswa\\fR [\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]]",
    )
    yield ".SH DESCRIPTION"
    yield from description
    yield ".SH COMMANDS"
    for name, command in main.commands.items():
        context = click.Context(command, info_name=name)
        yield f'.SS "{escaped(" ".join([name, *command.collect_usage_pieces(context)]))}"'
        yield from paragraphs(command)
        yield from options(command.params, context)
    yield ".SH OPTIONS"
    context = click.Context(main)
    yield from options(main.get_params(context), context)
    yield ".SH ENVIRONMENT"
    for variable, field in Settings.declared():
        default = field.metadata["default"]
        # That one depends on the computer.
        given = "" if variable == "HOST" else f" [{default or 'none'}]"
        yield from (".TP", f"\\fB{variable}\\fR", escaped(field.metadata["help"] + given))


def paragraphs(command: click.Command) -> Iterator[str]:
    """Yield a command's help; its first paragraph is the first line."""
    for number, text in enumerate(cleandoc(command.help or "").split("\n\n")):
        if number:
            yield ".PP"
        if text.startswith(PREFORMATTED):
            yield from (".nf", *map(escaped, text.removeprefix(PREFORMATTED).splitlines()), ".fi")
        else:
            yield escaped(" ".join(text.split()))


def options(parameters: Iterable[click.Parameter], context: click.Context) -> Iterator[str]:
    """Yield the options among the parameters, and their help."""
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record and isinstance(parameter, click.Option):
            yield from (".TP", f"\\fB{escaped(record[0])}\\fR", escaped(record[1]))


def escaped(text: str) -> str:
    """Return a text as man(7) shows it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    Path(__file__).with_name("mahasiswa.1").write_text("\n".join(page()) + "\n", "utf-8")
