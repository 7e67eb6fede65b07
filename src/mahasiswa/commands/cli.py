"""The commands of `mahasiswa`. Their settings come from the environment, or from the file of --settings."""

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import click

from mahasiswa.commands import transfers
from mahasiswa.commands.doctor import diagnose
from mahasiswa.commands.settings_file import use_settings
from mahasiswa.server.listener import CannotStart
from mahasiswa.settings import SettingError, Settings
from mahasiswa.sheets import stage
from mahasiswa.sheets.cells import Refused, TooHeavy
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import StoreError, Uncertain
from mahasiswa.system.administrator import typed
from mahasiswa.wording import TOO_HEAVY

INTERRUPTED = 130  # the exit code with which a shell reports a program that SIGINT has ended


class Commands(click.Group):
    """Ends each command that fails with one line and its exit code."""

    def invoke(self, context: click.Context) -> None:
        try:
            super().invoke(context)
        except KeyboardInterrupt:
            _fail("interrupted. Look before you repeat the command", INTERRUPTED)
        except (SettingError, CannotStart) as error:
            _fail(error, error.exit_code)
        except Uncertain as error:
            doubt = "The change may have been made. Look before you repeat the command"
            _fail(f"{error}. {doubt}")
        except (StoreError, Refused, TooHeavy) as error:
            _fail(str(error) or TOO_HEAVY)
        except BrokenPipeError:
            raise  # the reader of the output has ended
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _fail(f"{place}{error.strerror}")


def _settings_help() -> str:
    text = "\b\nSettings (environment variables):"
    for variable, field in Settings.declared():
        meaning, default = field.metadata["help"], field.metadata["default"]
        text += f"\n  {variable:<17} {meaning} [{default or 'none'}]"
    return text


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=_settings_help(),
    context_settings={"max_content_width": 120},
)
@click.version_option(package_name="mahasiswa")
@click.option(
    "--settings",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read settings from a file, one NAME=value in a line. Those of the environment win.",
)
@click.pass_context
def main(context: click.Context, file: Path | None) -> None:
    """Keep a list of student records that people edit in a browser.

    Without a command, start the service.
    """
    if file:
        use_settings(file)
    # A path may hold bytes that are not UTF-8.
    if sys.stdout:
        cast("Any", sys.stdout).reconfigure(errors="surrogateescape")
    if context.invoked_subcommand is None:
        context.invoke(serve)


@main.command()
def serve() -> None:
    """Start the service. SIGTERM or Ctrl-C stops it."""
    from mahasiswa.server import worker  # noqa: PLC0415 - slow to import, and no other command needs it

    worker.serve(Settings.from_environment(os.environ))


@main.command("import")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--existing",
    type=click.Choice(["skip", "update"]),
    default="skip",
    show_default=True,
    help="Skip or update a record whose NIM exists already.",
)
@click.option("--dry-run", is_flag=True, help="Report the changes, and write nothing.")
@click.option("--accept-doubts", is_flag=True, help="Write doubtful rows too, such as odd names.")
def import_(file: BinaryIO, existing: str, *, dry_run: bool, accept_doubts: bool) -> None:
    """Import the records of a spreadsheet: xlsx, xls, ods or csv. With - they are read from standard input.

    If any row is wrong or doubtful, nothing is written, and the first 100 such rows are listed. Sheets without sure
    titles are not read. Only the preview in the browser compares a NIM or a name with those that are stored.

    More than 10,000 rows cannot be undone, so make a back-up first.

    \b
    mahasiswa import mahasiswa.xlsx --dry-run
    mahasiswa import - --existing update < mahasiswa.csv
    DATABASE_URL=sqlite:////srv/mahasiswa.db mahasiswa import daftar.ods
    """  # noqa: D301 - click's mark for a paragraph that it must not wrap
    merged, remarks = transfers.import_file(
        _begin(), file, update=existing == "update", dry_run=dry_run, accept_doubts=accept_doubts
    )
    if remarks:
        click.echo(remarks, err=True)
    done = "would be written" if dry_run else "written"
    changes = f"{merged.new} new, {merged.changed} changed"
    click.echo(f"{done}: {changes}; left as they are: {merged.same}")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
def export(file: Path) -> None:
    """Export all records to a file that ends in .xlsx or .csv. With - they are written to standard output as CSV.

    An existing file is replaced when the export is complete, and keeps its mode.

    \b
    mahasiswa export mahasiswa.xlsx
    mahasiswa export - | gzip > mahasiswa.csv.gz
    """  # noqa: D301 - as above
    to_stdout = file == transfers.STANDARD_STREAM
    if not to_stdout and file.suffix.lower() not in EXPORTS:
        _fail(f"{file}: the name must end in {' or '.join(EXPORTS)}", 2)
    count = transfers.export_file(_begin().database_url, file)
    if not to_stdout:
        click.echo(f"{count} records in {file}")


@main.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--due",
    is_flag=True,
    help="Only if the newest one is older than BACKUP_HOURS, as the service does each hour.",
)
def backup(file: Path | None, *, due: bool) -> None:
    """Back up the SQLite database to a new file and verify the copy. The service may run meanwhile.

    Without FILE the copy gets a name with the time, in BACKUP_DIR. Old back-ups are removed there.

    \b
    mahasiswa backup
    mahasiswa backup /media/usb/mahasiswa.db
    """  # noqa: D301 - as above
    settings = _begin()
    due_hours = settings.backup_hours if due else 0
    for line in engine_of(settings.database_url).backup(settings.backup_dir, file, due_hours):
        click.echo(line)


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Replace all records by those of a back-up. The service may run meanwhile.

    The back-up is verified first, and may be of an older version. The records that are replaced are backed up to a new
    file beside the database. People who open the list see the old one, then the restored one. The history stays; an
    empty database gets the history of the back-up. A database that is missing, damaged or of a newer version is replaced
    as a whole. Its files are kept under another name, and the service must be started or restarted.

    \b
    mahasiswa restore mahasiswa-2026-11-20.db
    """  # noqa: D301 - as above
    restored = engine_of(_begin().database_url).restore(file)
    differences = f"{restored.added} added, {restored.changed} changed, {restored.removed} removed"
    click.echo(f"{restored.records} records restored from {file}: {differences}")
    if restored.backup:
        click.echo(f"the list as it was before: {restored.backup}")
    if restored.must_start:
        click.echo("Start or restart the service now: systemctl restart mahasiswa")
    again = typed("forget NIM")
    click.echo(f"If a person was forgotten after that back-up, forget them again: {again}")


@main.command()
def doctor() -> None:
    """Check the settings, the service, the database and the newest back-up, and name each fault with its remedy.

    Run it as the user of the service, and with its settings. The service may run meanwhile. The exit code is 1 if
    something is wrong.
    """
    is_good = True
    for finding in diagnose(_begin()):
        click.echo(f"{'ok   ' if finding.is_good else 'WRONG'}  {finding.text}")
        is_good &= finding.is_good
    sys.exit(not is_good)


@main.command()
@click.argument("nim")
def forget(nim: str) -> None:
    """Remove a person's record and all of its history, also from the free space of the database's files.

    It cannot be undone. If the NIM was changed, the texts under the person's other NIMs remain, and the command names
    these NIMs. Back-ups may still hold the texts.

    \b
    mahasiswa forget 20/456839/TK/50663
    """  # noqa: D301 - as above
    settings = _begin()
    engine = engine_of(settings.database_url)
    nim = os.fsencode(nim).decode(errors="replace")  # an argument may hold bytes that are not UTF-8
    was_known, other_nims = engine.forget(nim)
    for other in other_nims:
        name = transfers.printable(other)
        click.echo(f"{name}: the same person had this NIM. Run the command for it too.")
    removed = "the record and its history are removed"
    click.echo(f"{nim}: {removed if was_known else 'no record and no history'}")
    # With PostgreSQL, systemd gives the service a private folder for temporary files. Uploads there end within two hours.
    with suppress(FileNotFoundError):
        stage.remove(stage.folder_of(settings.database_url))
    engine.rewrite()
    click.echo(
        "Back-ups may hold the texts. The service removes those in BACKUP_DIR within 12 months. "
        "Files .before-… beside the database, dumps, exports, replicas and logs keep what they have: "
        "remove it from them yourself."
    )


@main.command()
@click.argument("source", metavar="URL")
def copy(source: str) -> None:
    """Copy all records of another database into this one, which has none yet, for example from SQLite to PostgreSQL.

    If any record cannot be copied, none is. Every user of the computer can see the command line, so put a password of
    PostgreSQL into DATABASE_URL or PGPASSFILE.

    \b
    mahasiswa copy sqlite:///mahasiswa.db
    """  # noqa: D301 - as above
    count = transfers.copy_records(_begin(), source)
    click.echo(f"{count} records copied")


def _begin() -> Settings:
    """The settings. It is said which database is used, because a shell may have read them differently from the service."""
    # A million rows make no cycles. Searching them for cycles would take a tenth of the time of an import.
    gc.disable()
    settings = Settings.from_environment(os.environ)
    click.echo(f"database: {settings.database_url}", err=True)
    return settings


def _fail(fault: object, code: int = 1) -> NoReturn:
    click.echo(f"mahasiswa: {fault}", err=True)
    sys.exit(code)
