"""The commands of `mahasiswa`. Their settings come from the environment, or from the file of --settings."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, cast

import click

from mahasiswa.commands import transfers
from mahasiswa.commands.doctor import diagnose
from mahasiswa.commands.settings_file import use_settings
from mahasiswa.server.listener import CannotStart
from mahasiswa.settings import (
    DatabaseURL,
    SettingError,
    Settings,
    SQLiteURL,
    parse_database_url,
)
from mahasiswa.sheets import stage
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.store.engines import engine_of
from mahasiswa.store.store_errors import (
    StoreError,
    Uncertain,
)
from mahasiswa.system import interrupt
from mahasiswa.system.administrator import note, process_user, typed

STANDARD_STREAM = Path("-")
READ_FILE = click.Path(dir_okay=False, readable=False, path_type=Path)
# The exit codes with which a shell reports a program that SIGINT or SIGPIPE has ended.
INTERRUPTED = 130
PIPE_CLOSED = 141


@contextmanager
def _ended_early(interrupted: str = "nothing was written") -> Iterator[None]:
    """Exit with one line after Ctrl-C or a failure.

    If the reader of standard output has ended, exit without a line.
    """
    interrupt.listen()
    try:
        yield
    except interrupt.Interrupted:
        _fail(f"mahasiswa: interrupted; {interrupted}", INTERRUPTED)
    except BrokenPipeError:
        # At exit Python writes the rest of its buffer, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)
    except transfers.Failure as failure:
        _fail(str(failure))
    except Uncertain as error:
        doubt = "The change may have been made. Look before you repeat the command"
        code = INTERRUPTED if interrupt.is_pressed() else 1
        _fail(f"mahasiswa: {error}. {doubt}", code)
    except StoreError as error:
        _fail(f"mahasiswa: {error}")


def _settings_help() -> str:
    lines = ["\b", "Settings (environment variables):"]
    for variable, field in Settings.declared():
        lines.append(
            f"  {variable:<17} {field.metadata['help']} [{field.metadata['default'] or 'none'}]"
        )
    return "\n".join(lines)


@click.group(
    invoke_without_command=True,
    epilog=_settings_help(),
    context_settings={"max_content_width": 120},
)
@click.version_option(package_name="mahasiswa")
@click.option(
    "--settings",
    "file",
    type=click.Path(path_type=Path),
    help="Read settings from a file, one NAME=value in a line. Those of the environment win.",
)
@click.pass_context
def main(context: click.Context, file: Path | None) -> None:
    """Keep a list of student records that people edit in a browser.

    Without a command, start the service.
    """
    if file:
        try:
            use_settings(file)
        except SettingError as error:
            _fail(f"mahasiswa: {error}", 2)
    # A path may hold bytes that are not UTF-8.
    if sys.stdout:
        cast("Any", sys.stdout).reconfigure(errors="surrogateescape")
    if context.invoked_subcommand is None:
        context.invoke(serve)


@main.command()
def serve() -> None:
    """Start the service. SIGTERM or Ctrl-C stops it."""
    from mahasiswa.server import worker  # noqa: PLC0415 - slow to import, and no other command needs it

    try:
        worker.serve(_settings())
    except CannotStart as error:
        _fail(f"mahasiswa: {error}", error.exit_code)


def _readable(_context: click.Context, _parameter: click.Parameter, file: Path) -> Path:
    """Check that this user may read the file of an argument; raise BadParameter."""
    if file == STANDARD_STREAM or os.access(file, os.R_OK):
        return file
    try:
        file.stat()
    except PermissionError:  # a folder above the file is closed to this user
        pass
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}") from None
    raise click.BadParameter(f"{file}: the user {process_user()} may not read it")


@main.command("import")
@click.argument("file", type=READ_FILE, callback=_readable)
@click.option(
    "--existing",
    type=click.Choice(["skip", "update"]),
    default="skip",
    show_default=True,
    help="Skip or update a record whose NIM exists already.",
)
@click.option("--dry-run", is_flag=True, help="Report the changes, and write nothing.")
@click.option("--accept-doubts", is_flag=True, help="Write doubtful rows too, such as odd names.")
@_ended_early()
def import_(file: Path, existing: str, *, dry_run: bool, accept_doubts: bool) -> None:
    """Import the records of a spreadsheet: xlsx, xls, ods or csv. With - they are read from standard input.

    If any row is wrong or doubtful, nothing is written, and the first 100 such rows are listed. Sheets without sure
    titles are not read. Only the preview in the browser compares a NIM or a name with those that are stored.

    \b
    mahasiswa import mahasiswa.xlsx --dry-run
    mahasiswa import - --existing update < mahasiswa.csv
    DATABASE_URL=sqlite:////srv/mahasiswa.db mahasiswa import daftar.ods
    """  # noqa: D301 - click's mark for a paragraph that it must not wrap
    settings = _settings_and_database()
    url = settings.database_url
    update = existing == "update"
    backups = settings.backup_dir
    merged, remarks = transfers.import_file(
        url, backups, file, update=update, dry_run=dry_run, accept_doubts=accept_doubts
    )
    for line in remarks:
        click.echo(line, err=True)
    done = "would be written" if dry_run else "written"
    if not update:
        merged = merged._replace(changed=0, same=merged.same + merged.changed)
    changes = f"{merged.new} new, {merged.changed} changed"
    click.echo(f"{done}: {changes}; left as they are: {merged.same}")
    if (merged.new or merged.changed) and not dry_run:
        note(f"import of {file} into {url}: {changes}")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
def export(file: Path) -> None:
    """Export all records to a file that ends in .xlsx or .csv. With - they are written to standard output as CSV.

    An existing file is replaced when the export is complete, and keeps its mode.

    \b
    mahasiswa export mahasiswa.xlsx
    mahasiswa export - | gzip > mahasiswa.csv.gz
    """  # noqa: D301 - as above
    to_stdout = file == STANDARD_STREAM
    if not to_stdout and file.suffix.lower() not in EXPORTS:
        _fail(f"mahasiswa: {file}: the name must end in .xlsx or .csv", 2)
    url = _settings_and_database().database_url
    with _ended_early("the output is incomplete" if to_stdout else "nothing was written"):
        count = transfers.export_file(url, file)
        if not to_stdout:
            click.echo(f"{count} records in {file}")


@main.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--due",
    is_flag=True,
    help="Only if the newest one is older than BACKUP_HOURS, as the service does each hour.",
)
@_ended_early()
def backup(file: Path | None, *, due: bool) -> None:
    """Back up the SQLite database to a new file and verify the copy. The service may run meanwhile.

    Without FILE the copy gets a name with the time, in BACKUP_DIR or beside the database. In BACKUP_DIR old back-ups are
    removed.

    \b
    mahasiswa backup
    mahasiswa backup /media/usb/mahasiswa.db
    """  # noqa: D301 - as above
    if file and due:
        raise click.UsageError("--due has no FILE.")
    settings = _settings_and_database()
    engine = engine_of(settings.database_url)
    if file is None:
        hours = settings.backup_hours if due else None
        for line in engine.back_up(settings.backup_dir, hours):
            click.echo(line)
    else:
        engine.backup(file)
        click.echo(f"{file}: {file.stat().st_size} bytes, verified")


@main.command()
@click.argument("file", type=READ_FILE, callback=_readable)
@_ended_early("nothing was changed")
def restore(file: Path) -> None:
    """Replace all records by those of a back-up. The service may run meanwhile.

    The back-up is verified first, and may be of an older version. The records that are replaced are backed up to a new
    file beside the database. People who open the list see the old one, then the restored one. The history stays; an
    empty database gets the history of the back-up. A database that is missing, damaged or of a newer version is replaced
    as a whole. Its files are kept under another name, and the service must be started or restarted.

    \b
    mahasiswa restore mahasiswa-2026-11-20.db
    """  # noqa: D301 - as above
    url = _settings_and_database().database_url
    restored = engine_of(url).restore(file)
    if not (restored.must_start or restored.backup):
        click.echo(f"{restored.records} records are as in {file}; nothing was changed")
        return
    differences = f"{restored.added} added, {restored.changed} changed, {restored.removed} removed"
    click.echo(f"{restored.records} records restored from {file}: {differences}")
    note(f"restore of {url} from {file}: {differences}")
    if restored.backup:
        click.echo(f"the list as it was before: {restored.backup}")
    if restored.must_start:
        click.echo("Start or restart the service now: systemctl restart mahasiswa")
    again = typed("forget NIM")
    click.echo(f"If a person was forgotten after that back-up, forget them again: {again}")


@main.command()
@_ended_early("the check is incomplete")
def doctor() -> None:
    """Check the settings, the service, the database, its disk and the newest back-up, and name each fault with its remedy.

    Run it as the user of the service, and with its settings. The service may run meanwhile. The exit code is 1 if
    something is wrong.
    """
    is_good = True
    for finding in diagnose(_settings_and_database()):
        click.echo(f"{'ok   ' if finding.is_good else 'WRONG'}  {finding.text}")
        is_good &= finding.is_good
    sys.exit(not is_good)


def _utf8(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Check that the bytes of an argument were UTF-8; raise BadParameter."""
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("the text is not UTF-8") from None
    return text


@main.command()
@click.argument("nim", callback=_utf8)
@_ended_early("nothing was removed")
def forget(nim: str) -> None:
    """Remove a person's record and all of its history, also from the free space of the database's files.

    It cannot be undone. If the NIM was changed, the texts under the person's other NIMs remain, and the command names
    these NIMs. It lists each back-up that still holds the texts, with the month after which it may be removed.

    \b
    mahasiswa forget 20/456839/TK/50663
    """  # noqa: D301 - as above
    settings = _settings_and_database()
    url = settings.database_url
    for other in transfers.other_nims(url, nim):
        click.echo(f"{other}: the same person had this NIM. Run the command for it too.")
    engine = engine_of(url)
    was_known = engine.forget(nim)
    if was_known:
        note(f"forget: a record and its history were removed from {url}")
    removed = "the record and its history are removed"
    click.echo(f"{nim}: {removed if was_known else 'no record and no history'}")
    try:
        stage.remove(stage.folder_of(url))
    except FileNotFoundError:
        # With PostgreSQL, systemd gives the service a private folder for temporary files.
        if not isinstance(url, SQLiteURL):
            click.echo("Uploads that wait for a confirmation end within two hours.")
    try:
        for line in engine.holders(settings.backup_dir, nim):
            click.echo(line)
    except OSError as error:
        click.echo(f"mahasiswa: the back-ups cannot be read: {error}", err=True)
    click.echo(
        "Dumps, exports, replicas and logs keep what they have. Remove it from them yourself."
    )
    engine.rewrite()


@main.command()
@click.option("--from", "source", metavar="URL", help="The database with the records.")
@click.option(
    "--to", "target", metavar="URL", help="The database to copy them to. It must hold no records."
)
@_ended_early()
def copy(source: str | None, target: str | None) -> None:
    """Copy all records from one database to another, for example from SQLite to PostgreSQL.

    An address that is left out is DATABASE_URL. @FILE reads the address from a file. Use it for an address with a
    password, because every user of the computer can see the command line. If any record cannot be copied, none is.

    \b
    mahasiswa copy --from sqlite:///mahasiswa.db --to postgresql://mahasiswa@db.example/mahasiswa
    mahasiswa copy --from sqlite:///mahasiswa.db --to @postgres.url
    """  # noqa: D301 - as above
    if source is None and target is None:
        raise click.UsageError("Give --from, --to or both.")
    settings = _settings()
    begin, end = (
        settings.database_url if text is None else _url(option, text)
        for option, text in (("--from", source), ("--to", target))
    )
    for url in (begin, end):
        _say_database(url)
    count = transfers.copy_records(begin, end, settings.backup_dir)
    click.echo(f"{count} records copied")
    note(f"copy of {count} records from {begin} to {end}")


def _url(option: str, text: str) -> DatabaseURL:
    try:
        if text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8", "surrogateescape").strip()
        return parse_database_url(text)
    except OSError as error:
        _fail(f"mahasiswa: {option}: {text[1:]}: {error.strerror}", 2)
    except ValueError as error:
        _fail(f"mahasiswa: {option} must be {error} or @FILE", 2)


def _settings_and_database() -> Settings:
    settings = _settings()
    _say_database(settings.database_url)
    return settings


def _say_database(url: DatabaseURL) -> None:
    """Say which database a command uses, because a shell may have read its settings differently from the service."""
    click.echo(f"database: {url}", err=True)


def _settings() -> Settings:
    try:
        return Settings.from_environment(os.environ)
    except SettingError as error:
        _fail(f"mahasiswa: {error}", 2)


def _fail(line: str, code: int = 1) -> NoReturn:
    click.echo(line, err=True)
    sys.exit(code)
