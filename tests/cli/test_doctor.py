"""The checks of the start and of `mahasiswa doctor`: for each fault of a real database, what both say, and /sehat."""

import os
import pwd
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest
from harness import Service, StartError, free_port
from operators import TWO, Operator, aged, overwrite, use_up
from postgres import clerk, execute, locked, own_schema
from processes import cannot, until
from stores import migrate, other_program, run_script

from mahasiswa.store.backup_folder import free_name
from mahasiswa.system.administrator import process_user


def problems(operator: Operator, before: Sequence[str] = (), **environment: str) -> list[str]:
    """Run the command, which must find something wrong; return the sentences about that."""
    answer = operator.run("doctor", before=before, **environment)
    assert answer.returncode == 1, answer.stdout
    assert answer.stderr == ""
    return re.findall("^WRONG  (.*)", answer.stdout, re.MULTILINE)


def start(operator: Operator) -> Service:
    return Service(operator.environment["DATABASE_URL"], {"PORT": operator.environment["PORT"]})


def refusal(operator: Operator, code: int) -> str:
    """Start the service, which must end with this exit code; return its standard error."""
    with pytest.raises(StartError) as refused:
        start(operator)
    assert refused.value.code == code
    return refused.value.stderr


@pytest.fixture(name="operator")
def operator_at_a_port(tmp_path: Path) -> Operator:
    operator = Operator(tmp_path)
    operator.environment |= {"HOST": "127.0.0.1", "PORT": str(free_port())}
    return operator


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two records, and a back-up of them in the folder `cadangan`."""
    operator = Operator(tmp_path_factory.mktemp("kept"))
    operator.fill(TWO)
    operator.keep_backups()
    operator.done("backup")
    return operator.folder


@pytest.fixture(name="kept")
def operator_with_a_backup(operator: Operator, backed_up: Path) -> Operator:
    shutil.copytree(backed_up, operator.folder, dirs_exist_ok=True)
    operator.keep_backups()
    return operator


def backup_of(operator: Operator) -> Path:
    (file,) = operator.backup_files()
    return file


def test_a_sound_installation_is_reported_as_such(kept: Operator) -> None:
    """Each line begins with ok, and nothing is written. So it is while the service runs."""
    file, before = backup_of(kept), kept.database.read_bytes()
    said = f"""
        The settings can be used
        Port {kept.environment["PORT"]} is free
        A restore and an upgrade have room in
        Only the owner and its group have rights
        mahasiswa.db takes changes
        mahasiswa.db is sound and holds 2 records
        {file} is sound and holds 2 records
        The newest back-up, {file}, is 0.0 hours old
    """
    lines = kept.done("doctor").splitlines()
    assert all(line.startswith("ok     ") for line in lines)
    for text in said.strip().splitlines():
        assert sum(text.strip() in line for line in lines) == 1, text
    assert kept.databases == [str(kept.database)]
    assert kept.database.read_bytes() == before
    assert kept.names() == {"cadangan"}
    with start(kept) as service:
        assert f"The service answers on port {service.port}" in kept.done("doctor")
        assert service.stderr() == ""
    # The import of two records.
    assert kept.ask("SELECT count(*) FROM mahasiswa_history") == [(3,)]


def test_a_service_on_a_unix_socket_is_asked_there(kept: Operator) -> None:
    """Its proxy needs no address in TRUSTED_PROXIES. Another program that has the socket is found."""
    path = str(kept.folder / "socket")
    kept.environment |= {"HOST": f"unix:{path}", "TRUSTED_PROXIES": "192.0.2.1"}
    assert f"The service does not run. Nothing listens on {path}." in kept.done("doctor")
    listen = {name: kept.environment[name] for name in ("HOST", "TRUSTED_PROXIES")}
    with Service(kept.database, listen):
        assert f"The service answers on {path}." in kept.done("doctor")
    Path(path).unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen()

        def end_one() -> None:
            other.accept()[0].close()

        with ThreadPoolExecutor() as threads:
            threads.submit(end_one)
            assert problems(kept) == [f"Another program has {path}. End it, or change HOST."]


LARGE_CHANGE = """
CREATE TABLE lain (a);
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 70) INSERT INTO lain SELECT zeroblob(1000000) FROM n
"""
LONG_LOG = "mahasiswa.db-wal has 67 MB, because a program reads without end"
ODD_TEXT = "INSERT INTO mahasiswa VALUES ('7', CAST(x'61ff' AS TEXT), 'Solo')"
NOT_UTF8 = "could not be read: another program has stored a text that is not UTF-8; mahasiswa doctor names the record"
LOST_TRIGGERS = "The triggers of the history are missing or disabled"
CREATED_AGAIN = "triggers of .* were missing or changed, and are created again"
FILE_FAULTS = {
    "a text that is not UTF-8": (
        ODD_TEXT,
        "A text of the record '7' is not UTF-8. Correct it",
        NOT_UTF8,
        503,
    ),
    "triggers": (
        "DROP TRIGGER mahasiswa_history_insert",
        f"{LOST_TRIGGERS}. Restart the service",
        CREATED_AGAIN,
        200,
    ),
    "a long log": ("", LONG_LOG, LONG_LOG, 200),
}


@pytest.mark.parametrize(("sql", "doctor", "log", "status"), FILE_FAULTS.values(), ids=FILE_FAULTS)
def test_a_fault_of_the_file_is_found_and_the_service_says_what_it_does(
    kept: Operator, sql: str, doctor: str, log: str, status: int
) -> None:
    """The doctor names it, the service starts, its log names it too, and /sehat is 200. The list may be 503."""
    with other_program(kept.database) as execute:
        execute(sql or "BEGIN")
        if not sql:  # the other program reads, so the log cannot be copied into the file
            execute("SELECT count(*) FROM mahasiswa")
            kept.sql(LARGE_CHANGE)
        (line,) = problems(kept)
        assert re.search(doctor, line)
        with start(kept) as service, service.site() as site:
            assert (site.get("/").status_code, site.get("/sehat").status_code) == (status, 200)
            until(lambda: re.search(log, service.stderr()))


def test_damage_is_found_and_makes_the_service_unwell(kept: Operator) -> None:
    """While the list is 503, /sehat is 503 too. The service does not start with such a file, and says what to do."""
    with start(kept) as service, service.site() as site:
        assert site.get("/").status_code == 200
        ((page,),) = kept.ask("SELECT rootpage FROM sqlite_schema WHERE name = 'mahasiswa'")
        overwrite(kept.database, 4096 * (cast("int", page) - 1), 4096 * cast("int", page))
        # So that the list is read again.
        kept.sql("UPDATE mahasiswa_history_state SET noted = '2026'")
        assert [site.get(path).status_code for path in ("/", "/sehat")] == [503, 503]
        service.says("is damaged (")
        service.kill()
    (line,) = problems(kept)
    assert line.startswith(f"{kept.database} is damaged (")
    assert line.endswith(f"Restore a back-up: mahasiswa restore {backup_of(kept)}")
    assert re.fullmatch("mahasiswa: .* is damaged .*\n", refusal(kept, 2))
    kept.type_remedy(line)
    assert kept.records() == TWO


FAULTS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a missing file": (
        lambda database, _: database.unlink(),
        r"mahasiswa\.db does not exist\. To begin an empty list: mahasiswa begin\. .* restore /.*\.db$",
    ),
    "no list": (
        lambda database, _: database.write_bytes(b""),
        "holds no list. Check DATABASE_URL. To begin an empty list: mahasiswa begin$",
    ),
    "a newer version": (
        lambda database, _: run_script(database, "PRAGMA user_version = 99"),
        "schema version 99",
    ),
    "a damaged back-up": (
        lambda _, backup: overwrite(backup, 4096, 8192),
        "damaged.* Make one now: mahasiswa backup",
    ),
    "a back-up that is none": (
        lambda _, backup: backup.write_bytes(b"NIM;"),
        "Make one now: mahasiswa backup",
    ),
    "a newer back-up": (
        lambda _, file: run_script(file, "PRAGMA user_version = 99"),
        "n 99.* Make one now: mahasiswa",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_cannot_be_used_is_found(kept: Operator, fault: str) -> None:
    """Nothing is created."""
    prepare, found = FAULTS[fault]
    prepare(kept.database, backup_of(kept))
    names = sorted(kept.folder.iterdir())
    (line,) = problems(kept)
    assert re.search(found, line)
    assert sorted(kept.folder.iterdir()) == names


@pytest.mark.parametrize(
    ("url", "shown", "said"),
    [
        (
            "sqlite:////tidak/ada/a.db",
            "/tidak/ada/a.db",
            "The folder /tidak/ada does not exist. Create it, or correct",
        ),
        (
            "postgresql://siti:rahasia@127.0.0.1:1/x",
            "postgresql://127.0.0.1:1/x",
            "PostgreSQL cannot be used: ",
        ),
    ],
)
def test_a_database_that_cannot_be_reached_is_found(
    operator: Operator, url: str, shown: str, said: str
) -> None:
    """Neither the line nor the name of the database shows the password."""
    line, _ = problems(operator, DATABASE_URL=url)
    assert line.startswith(said)
    assert "rahasia" not in line
    assert operator.databases == [shown]


def test_a_user_without_rights_is_told_who_has_them(
    kept: Operator, unprivileged: list[str]
) -> None:
    backup_of(kept).chmod(0)
    kept.database.chmod(0o400)
    kept.folder.chmod(0o500)
    try:
        folder, backup = problems(kept, before=unprivileged)
    finally:
        kept.folder.chmod(0o700)
    user = process_user()
    for path, said in ((kept.folder, folder), (backup_of(kept), backup.removesuffix("."))):
        assert said == f"{path} belongs to {user}, who may not use it. Run: chmod u+rwX {path}"
    assert backup.endswith(".")
    assert f"Run: chmod u+rwX {kept.database}" in problems(kept, before=unprivileged)[0]


@pytest.mark.root
def test_a_database_of_another_user_is_found(kept: Operator, unprivileged: list[str]) -> None:
    if os.geteuid() != 0:
        cannot("give a file to another user")
    kept.database.chmod(0o400)
    remedies = {
        kept.database: f"as root: chown root: {kept.database}*",
        kept.folder: "correct DATABASE_URL",
    }
    for path, remedy in remedies.items():
        os.chown(path, pwd.getpwnam("nobody").pw_uid, 0)
        line = problems(kept, before=unprivileged)[0]
        assert line.startswith(f"{path} belongs to nobody")
        assert line.endswith(f" Run this as nobody, or {remedy}")


def test_a_full_disk_is_found(kept: Operator, small_disk: Path) -> None:
    filler = use_up(small_disk)
    (line,) = problems(kept, BACKUP_DIR=str(small_disk))
    assert f": only 0 MB are free for {small_disk}, not 1 MB. Make room" in line
    filler.unlink()
    shutil.copy(kept.database, small_disk / "a.db")
    line, *_ = problems(kept, DATABASE_URL=f"sqlite:///{small_disk}/a.db")
    assert re.fullmatch(r"A restore or an upgrade may fail: only .* Make room on that disk\.", line)
    kept.sql("INSERT INTO mahasiswa VALUES ('3', 'x', printf('%.*c', 1200000, 'x'))")
    (line,) = problems(kept, BACKUP_DIR=str(small_disk))
    lack = r"only \d MB are free for .*, not \d MB\. Make room on that disk\."
    assert re.fullmatch(f"The next back-up has no room: {lack}", line)
    shutil.copy(backup_of(kept), small_disk)
    assert problems(kept, BACKUP_DIR=str(small_disk)) == [line]
    use_up(small_disk)
    said = f"The disk of {small_disk}/a.db is full. Make room on it"
    assert said in problems(kept, DATABASE_URL=f"sqlite:///{small_disk}/a.db")


def test_forms_of_other_sites_are_found(kept: Operator) -> None:
    """Forms of other sites are accepted if other computers reach the service, also by a proxy. The log says so, too."""
    found = "Other sites can send forms through a visitor's browser. Set SAME_ORIGIN_ONLY=1."
    for reached in ({"HOST": "0.0.0.0"}, {"BASE_URL": "https://kampus.example"}):
        assert found in problems(kept, **reached)
        assert found not in kept.doctor(**reached, SAME_ORIGIN_ONLY="1")
        with Service(kept.database, reached) as service:
            service.says(" WARNING Forms of other sites are accepted. To refuse")


def test_a_port_of_another_program_is_found(kept: Operator) -> None:
    """Also if that program answers as a web server does."""
    address = ("127.0.0.1", int(kept.environment["PORT"]))
    with HTTPServer(address, BaseHTTPRequestHandler) as other, ThreadPoolExecutor(1) as thread:
        other.timeout = 60
        thread.submit(other.handle_request)
        (line,) = problems(kept)
    assert line.startswith("Another program has the port: cannot listen on 127.0.0.1 port ")


def test_a_port_that_cannot_be_used_has_another_cause(
    kept: Operator, no_low_ports: list[str]
) -> None:
    # No machine has an address in 192.0.2.0/24, which is reserved for documentation.
    fault = f"cannot listen on 192.0.2.1 port {kept.environment['PORT']}: Cannot assign requested address"
    said = f"This computer does not have the address of HOST: {fault}. Correct HOST, or connect the network."
    assert problems(kept, HOST="192.0.2.1")[1:] == [said]
    (line,) = problems(kept, before=no_low_ports, PORT="80")
    assert line.startswith(
        f"The user {process_user()} may not use the port: cannot listen on 127.0.0.1 port 80: "
    )


def test_proxies_that_are_not_or_too_widely_trusted_are_found(kept: Operator) -> None:
    """A proxy of a service at 127.0.0.1 has that address itself."""
    (line,) = problems(kept, TRUSTED_PROXIES="10.0.0.0/8, ::1")
    assert re.match("TRUSTED_PROXIES lacks 127.0.0.1. .* Add 127.0.0.1.", line)
    said = "TRUSTED_PROXIES has every address, so anyone can give any name. Name the proxies alone."
    assert problems(kept, TRUSTED_PROXIES="0.0.0.0/0", USER_HEADER="X-Remote-User") == [said]


def test_a_sound_list_that_looks_unusual_is_no_fault(kept: Operator) -> None:
    """The log is long after a large change, while the service has it open. A copy of `.dump` has no version yet."""
    with start(kept):
        kept.sql(LARGE_CHANGE)
        said = "mahasiswa.db-wal has 67 MB after a large change. The next change shortens it."
        assert said in kept.done("doctor")
    kept.sql("DROP TABLE lain")
    with closing(sqlite3.connect(kept.database)) as db:
        script = "".join(db.iterdump())
    kept.database.unlink()
    kept.sql(script)
    kept.database.chmod(0o600)
    assert f"{kept.database} takes changes" in kept.done("doctor")


def test_a_backup_of_the_other_engine_is_named_as_such(owner: Operator) -> None:
    """PostgreSQL without a dump gets its own command. A torn dump is found without its programs too."""
    owner.database.write_bytes(b"SQLite format 3\0")
    (line,) = owner.failed("restore", str(owner.database), MAHASISWA_COMMAND="mahasiswa-run")
    assert line.endswith(f": mahasiswa-run copy --from sqlite:///{owner.database}")
    (owner.folder / "a.dump").write_bytes(b"PGDMP\1")
    (line,) = owner.failed("restore", "a.dump", DATABASE_URL=f"sqlite:///{owner.folder}/a.db")
    dump = "it is a dump of PostgreSQL: restore it there with pg_restore"
    assert line.endswith(f"a.dump is not an SQLite database; {dump}")
    owner.backups.mkdir()
    owner.keep_backups()
    remedy = "Make one now: systemctl start mahasiswa-pgdump"
    assert f"{owner.backups} holds no back-up. {remedy}" in problems(owner)
    torn = free_name(owner.backups, "mahasiswa-", ".dump")
    torn.touch(mode=0o600)
    for programs in (owner.environment["PATH"], "/nonexistent"):
        (line,) = (line for line in problems(owner, PATH=programs) if str(torn) in line)
        assert line == f"{torn} cannot be restored: it is torn, or no dump. {remedy}"


def test_an_old_a_missing_and_a_future_backup_are_found(kept: Operator) -> None:
    """The limit is BACKUP_HOURS and two hours more. The database itself is never taken for a back-up."""
    file = backup_of(kept).rename(kept.folder / backup_of(kept).name)
    kept.keep_backups(kept.folder)
    aged(file, 25 * 3600)
    assert "is 25.0 hours old" in kept.done("doctor")
    aged(file, 27 * 3600)
    assert re.match(r"The newest back-up, .* is 27.0 hours old. Find out why", problems(kept)[0])
    aged(file, -24 * 3600)
    assert f"The newest back-up, {file}, is 0.0 hours old" in kept.done("doctor")
    file = file.rename(re.sub(r"\d{8}T", "29991231T", str(file)))
    future = f"The time in the name {file} is in the future, so that back-up does not count."
    remedy = f"Correct the clock. If it is right, run: mv {file} {file}.kept"
    found, missing = problems(kept)
    assert found == f"{future} {remedy}"
    subprocess.run(shlex.split(found.rpartition("run: ")[2]), check=True)
    assert missing.startswith(f"{kept.folder} holds no back-up.")
    assert problems(kept) == [f"{kept.folder} holds no back-up. Make one now: mahasiswa backup"]
    kept.type_remedy(problems(kept)[0])
    assert "is 0.0 hours old" in kept.done("doctor")
    assert problems(kept, BACKUP_DIR="") == ["No back-ups are made. Set BACKUP_DIR to a folder."]


def test_a_folder_of_backups_that_cannot_be_read_has_a_remedy(
    kept: Operator, unprivileged: list[str]
) -> None:
    """It is that of a missing disk, or of missing rights."""
    folder = kept.backups
    folder.chmod(0)
    (line,) = problems(kept, before=unprivileged)
    folder.chmod(0o700)
    fault = f"The folder of the back-ups {folder} cannot be read"
    remedy = f"Give the user {process_user()} the rights on it"
    assert line == f"{fault}: Permission denied. {remedy}"
    shutil.rmtree(folder)
    (line,) = problems(kept)
    assert line.startswith(f"{fault}: No such file or directory. Connect its disk, or set ")


def test_backups_that_every_user_can_read_are_found(kept: Operator) -> None:
    """Its command mends it. Under systemd, commands are those of mahasiswa-run."""
    backup_of(kept).chmod(0o644)
    (line,) = problems(kept)
    assert line.startswith("Every user of this computer has rights on back-ups. Run: chmod ")
    kept.type_remedy(line)
    kept.done("doctor")
    backup_of(kept).unlink()
    (line,) = problems(kept, MAHASISWA_COMMAND="mahasiswa-run")
    assert line.endswith("holds no back-up. Make one now: mahasiswa-run backup")


@pytest.fixture(name="owner")
def operator_with_tables(operator: Operator, postgres: str) -> Iterator[Operator]:
    with own_schema(postgres) as url:
        migrate(url)
        operator.use(url)
        yield operator


@contextmanager
def as_clerk(owner: Operator) -> Iterator[str]:
    """Let the operator be a role that may read and write the tables of the owner; return its name."""
    with clerk(owner.environment["DATABASE_URL"]) as (role, url):
        owner.use(url)
        yield role


def test_a_number_is_not_accepted_without_the_folder_of_the_dumps(owner: Operator) -> None:
    owner.keep_backups()
    (line,) = owner.failed("doctor", "--accept")
    start = re.escape(f"mahasiswa: nothing was accepted: {owner.backups}/mahasiswa-")
    assert re.fullmatch(rf"{start}\S+: No such file or directory", line)


REVOKE = "REVOKE INSERT ON mahasiswa FROM {role}; REVOKE DELETE ON mahasiswa_history FROM {role}"
GRANT = "{role} lacks rights. .* run: GRANT INSERT ON mahasiswa TO {role}; GRANT DELETE ON mahasiswa_history TO {role}"
DISABLE = "ALTER TABLE mahasiswa DISABLE TRIGGER mahasiswa_history_insert"
OWNED = f"{LOST_TRIGGERS}.|the table mahasiswa belongs to postgres, who must run"


@pytest.mark.parametrize(
    ("breaking", "said"), [(REVOKE, GRANT), (DISABLE, OWNED)], ids=["rights", "triggers"]
)
def test_a_fault_of_the_tables_is_found_and_the_service_does_not_start(
    owner: Operator, breaking: str, said: str
) -> None:
    """Both say the same about rights. Only the owner can enable the triggers, so the start gives the owner the SQL."""
    url = owner.environment["DATABASE_URL"]
    with as_clerk(owner) as role:
        assert all("off" in line or "back-ups" in line for line in problems(owner))
        execute(url, breaking.format(role=role))
        assert any(re.search(said.format(role=role), line) for line in problems(owner))
        assert re.search(said.format(role=role), refusal(owner, 1))


def test_the_lack_of_the_right_to_import_is_found(owner: Operator) -> None:
    """The service does not need it, and starts. The line has the SQL for the owner of the database."""
    url = owner.environment["DATABASE_URL"]
    lack = "The commands import and copy lack a right. The owner of the database must run: "
    try:
        execute(url, "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
        with as_clerk(owner):
            (line,) = (line for line in problems(owner) if "lack a right" in line)
            assert line.startswith(lack)
            grant = line.removeprefix(lack)
            said = "mahasiswa: a right is missing; the owner of the database must run: "
            assert owner.failed("import", owner.write_rows(*TWO)) == [said + grant]
            with start(owner):
                pass
            execute(url, grant)
            assert "lack a right" not in "".join(problems(owner))
    finally:
        execute(url, "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")


def test_disabled_triggers_are_created_again_by_the_start_of_the_owner(owner: Operator) -> None:
    """The log says so, and the history goes on. A missing constraint is found only."""
    url = owner.environment["DATABASE_URL"]
    execute(
        url,
        "ALTER TABLE mahasiswa DISABLE TRIGGER ALL; ALTER TABLE mahasiswa DROP CONSTRAINT nim_too_long",
    )
    assert any("lacks the constraints nim_too_long" in line for line in problems(owner))
    with start(owner) as service, service.site() as site:
        service.says("triggers were missing or of another release, and are created again")
        site.stores("1", "Siti", "Solo")
    assert execute(url, "SELECT count(*) FROM mahasiswa_history") == [(1,)]


def test_a_table_that_another_program_has_locked_is_a_finding(owner: Operator) -> None:
    said = "Another program has locked the table mahasiswa. Try again when it has ended."
    with locked(owner.environment["DATABASE_URL"], "SHARE"):
        assert said in problems(owner)


def test_another_encoding_than_utf8_is_found_and_the_service_does_not_start(
    operator: Operator, postgres: str
) -> None:
    name = f"latin_{uuid.uuid4().hex}"
    execute(
        postgres,
        f"CREATE DATABASE {name} ENCODING LATIN1 TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'",
    )
    operator.use(f"{postgres.rpartition('/')[0]}/{name}")
    said = "the database has the encoding LATIN1; it must be UTF8"
    try:
        assert any(said in line for line in problems(operator))
        assert refusal(operator, 2) == f"mahasiswa: {said}\n"
    finally:
        execute(postgres, f"DROP DATABASE {name}")
