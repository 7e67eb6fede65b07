"""The command line: `mahasiswa` serves; its settings come from the environment."""

import os
import sys
from typing import NoReturn

import click

from mahasiswa.settings import SettingError, Settings


def _settings_help() -> str:
    lines = ["\b", "Settings (environment variables):"]
    for variable, field in Settings.declared():
        default = field.metadata["default"]
        shown = default() if callable(default) else default
        lines.append(f"  {variable:<17} {field.metadata['help']} [{shown}]")
    return "\n".join(lines)


@click.group(invoke_without_command=True, epilog=_settings_help(), context_settings={"max_content_width": 120})
@click.version_option(package_name="mahasiswa")
@click.pass_context
def main(context: click.Context) -> None:
    """Keep a list of student records that people edit in a browser.

    Without a command, the service is started.
    """
    if context.invoked_subcommand is None:
        context.invoke(serve)


@main.command()
def serve() -> None:
    """Start the service; SIGTERM or Ctrl-C ends it."""
    settings = _settings()
    from mahasiswa.server import CannotStart, serve  # noqa: PLC0415 - `--help` and a wrong setting need no server

    try:
        serve(settings)
    except CannotStart as error:
        _fail(str(error), 1)


def _settings() -> Settings:
    try:
        return Settings.from_environment(os.environ)
    except SettingError as error:
        _fail(str(error), 2)


def _fail(line: str, code: int) -> NoReturn:
    click.echo(f"mahasiswa: {line}", err=True)
    sys.exit(code)
