"""The commands of `mahasiswa`. Their settings come from the environment."""

import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from mahasiswa.settings import SettingError, Settings, parse_database_url

# Each command imports what it needs, so that `--help` and a wrong setting are answered at once.


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

    Without a command, start the service.
    """
    if context.invoked_subcommand is None:
        context.invoke(serve)


@main.command()
def serve() -> None:
    """Start the service. SIGTERM or Ctrl-C stops it."""
    settings = _settings()
    from mahasiswa.server import CannotStart, serve  # noqa: PLC0415 - as above

    try:
        serve(settings)
    except CannotStart as error:
        _fail(f"mahasiswa: {error}")


@main.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--existing",
    type=click.Choice(["skip", "update"]),
    default="skip",
    show_default=True,
    help="What to do with a record whose NIM exists already.",
)
@click.option("--dry-run", is_flag=True, help="Report what would be written, and write nothing.")
def import_(file: Path, existing: str, *, dry_run: bool) -> None:
    """Import the records of a spreadsheet: xlsx, xls, ods or csv.

    If any row is wrong, nothing is written, and the wrong rows are listed.

    \b
    mahasiswa import mahasiswa.xlsx --dry-run
    mahasiswa import mahasiswa.csv --existing update
    DATABASE_URL=sqlite:////srv/mahasiswa.db mahasiswa import daftar.ods
    """  # noqa: D301 - click's mark for a paragraph that it must not wrap
    url = _settings().database_url
    from mahasiswa.bulk import Failure, import_file  # noqa: PLC0415 - as above

    try:
        merged, warnings = import_file(url, file, update=existing == "update", dry_run=dry_run)
    except Failure as failure:
        _fail("\n".join(failure.lines))
    for line in warnings:
        click.echo(line, err=True)
    done = "would be written" if dry_run else "written"
    same = merged.same if existing == "update" else merged.same + merged.changed
    changed = merged.changed if existing == "update" else 0
    click.echo(f"{done}: {merged.new} new, {changed} changed; left as they are: {same}")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
def export(file: Path) -> None:
    """Export all records to a file that ends in .xlsx or .csv. With - they are written to standard output as CSV.

    \b
    mahasiswa export mahasiswa.xlsx
    mahasiswa export - | gzip > mahasiswa.csv.gz
    """  # noqa: D301 - as above
    if file != Path("-") and file.suffix.lower() not in (".xlsx", ".csv"):
        _fail(f"mahasiswa: {file}: the name must end in .xlsx or .csv", 2)
    url = _settings().database_url
    from mahasiswa.bulk import Failure, export_file  # noqa: PLC0415 - as above

    try:
        count = export_file(url, file)
    except Failure as failure:
        _fail("\n".join(failure.lines))
    if file != Path("-"):
        click.echo(f"{count} records in {file}")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Back up the SQLite database to a new file and verify the copy. The service may run meanwhile.

    \b
    mahasiswa backup "mahasiswa-$(date +%F).db"
    """  # noqa: D301 - as above
    url = _settings().database_url
    from mahasiswa.store import backup  # noqa: PLC0415 - as above
    from mahasiswa.store.errors import Unusable  # noqa: PLC0415 - as above

    try:
        backup(url, file)
    except Unusable as error:
        _fail(f"mahasiswa: {error}")
    click.echo(f"{file}: {file.stat().st_size} bytes, verified")


@main.command()
def adopt() -> None:
    """Take over a table "mahasiswa" that another program made.

    The table is rebuilt with the definition of this program, and every record keeps its texts unchanged. SQLite: the
    database is backed up first, to a new file beside it. Nothing changes if a record or the table itself cannot be
    taken over; the reason is printed. Stop the service and the other program before.

    \b
    DATABASE_URL=sqlite:////srv/mahasiswa.db mahasiswa adopt
    """  # noqa: D301 - as above
    url = _settings().database_url
    from mahasiswa.store import adopt  # noqa: PLC0415 - as above
    from mahasiswa.store.errors import Unusable  # noqa: PLC0415 - as above

    try:
        adopted = adopt(url)
    except Unusable as error:
        _fail(f"mahasiswa: {error}")
    saved = f"; the database as it was before: {adopted.backup}" if adopted.backup else ""
    click.echo(f"{adopted.records} records adopted{saved}")


@main.command()
@click.option("--from", "source", required=True, metavar="URL", help="The database with the records.")
@click.option(
    "--to", "target", required=True, metavar="URL", help="The database to copy them to. It must hold no records."
)
def copy(source: str, target: str) -> None:
    """Copy all records from one database to another, for example from SQLite to PostgreSQL.

    If any record cannot be copied, none is.

    \b
    mahasiswa copy --from sqlite:///mahasiswa.db --to postgresql://mahasiswa@db.example/mahasiswa
    """  # noqa: D301 - as above
    try:
        urls = parse_database_url(source), parse_database_url(target)
    except ValueError as error:
        _fail(f"mahasiswa: --from and --to must be {error}", 2)
    from mahasiswa.bulk import Failure, copy_records  # noqa: PLC0415 - as above

    try:
        count = copy_records(*urls)
    except Failure as failure:
        _fail("\n".join(failure.lines))
    click.echo(f"{count} records copied")


def _settings() -> Settings:
    try:
        return Settings.from_environment(os.environ)
    except SettingError as error:
        _fail(f"mahasiswa: {error}", 2)


def _fail(line: str, code: int = 1) -> NoReturn:
    click.echo(line, err=True)
    sys.exit(code)
