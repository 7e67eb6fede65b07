"""A small Debian that systemd-nspawn boots: the blocks of commands of docs/install.md, keep.md and cluster.md run there.

The machine shares the network of this computer. Packages of Python come from a folder, so it needs no registry.
"""

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from cli.operators import records_of
from harness import Site, is_free, led_to
from install.installed import (
    ROOT,
    block,
    do_what_staff_do,
    is_well,
    make_debian,
)
from processes import cannot, run, until

PORTS = (80, 443, 3000)
BOOT_SECONDS = 60.0
BACK_SECONDS = 3.0
EXPOSURE_MAX_PERCENT = 20
UNIT = "mahasiswa.service"
GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@kampus.example")
COMMAND = "sudo -u mahasiswa mahasiswa --settings /etc/mahasiswa.env"
SETTINGS = "/etc/mahasiswa.env"
DATABASE = "/var/lib/mahasiswa/mahasiswa.db"
BACKUPS = "/var/lib/mahasiswa-backup"
NIM = "20/456839/TK/50663"
NAME, PASSWORD = "kampus.example", "rahasia"

# The packages of the blocks, and those that every installed Debian has.
DEBIAN = "adduser apache2-utils ca-certificates curl git make nginx openssl procps python3-venv sudo systemd systemd-sysv"

NEXT_VERSION = """
UPGRADES = *UPGRADES, 'ALTER TABLE mahasiswa_history ADD COLUMN lain TEXT'
"""
SCHEMA = "src/mahasiswa/store/sqlite/sqlite_schema.py"

pytestmark = pytest.mark.torture


class Machine:
    """A Debian, booted by systemd-nspawn, with our repository at /repository and packages of Python at /wheels."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.root = folder / "root"
        self.repository = folder / "repository"
        self.site = site
        self._process = subprocess.Popen(
            [
                *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe"),
                *("--boot", f"--directory={self.root}"),
                f"--bind-ro={self.repository}:/repository",
                f"--bind-ro={folder}/wheels:/wheels",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # A hang-up of the machine's console must not reach this process.
            start_new_session=True,
        )

    def run(self, script: str) -> str:
        """Run lines of a shell as root, without a terminal; return their standard output. Each line must succeed."""
        (init,) = psutil.Process(self._process.pid).children()
        environment = (
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            "LANG=C.UTF-8",
            "PIP_NO_INDEX=1",
            "PIP_FIND_LINKS=/wheels",
        )
        # No file of root can be read by others unless a command sets its rights.
        lines = f"umask 077; cd /root\n{script}"
        shell = ("setsid", "--wait", "bash", "-euo", "pipefail", "-c", lines)
        return run(
            "nsenter", f"--target={init.pid}", "--all", "--", "env", "-i", *environment, *shell
        )

    def property(self, name: str, unit: str = UNIT) -> str:
        return self.run(f"systemctl show --property={name} --value {unit}").strip()

    def in_root(self, path: str) -> Path:
        """Return where a file of the machine is on this computer."""
        return self.root / path.lstrip("/")

    def newest_backup(self) -> Path:
        return max(self.in_root(BACKUPS).glob("mahasiswa-*.db"))

    def power_off(self) -> None:
        """Shut the machine down: systemd-nspawn tells its init about SIGTERM."""
        self._process.terminate()
        try:
            self._process.wait(BOOT_SECONDS)
        finally:
            self._process.kill()

    def is_up(self) -> bool:
        with suppress(AssertionError, ValueError):
            state = self.run("systemctl is-system-running || true").strip()
            return state in ("running", "degraded")
        return False


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Boot a Debian with the packages that the documents install, and a clone of our repository."""
    if taken := [port for port in PORTS if not is_free(port)]:
        pytest.skip(f"another program listens on {taken}")
    with tempfile.TemporaryDirectory() as name, Site("http://127.0.0.1:3000") as site:
        folder = Path(name)
        make_debian(folder, "bookworm", DEBIAN, "3.11")
        run("git", "clone", "--quiet", ROOT, folder / "repository")
        run("git", "checkout", "--quiet", "-B", "main", cwd=folder / "repository")
        with (folder / "root" / "etc" / "hosts").open("a") as hosts:
            hosts.write(f"127.0.0.1 localhost {NAME}\n")
        machine = Machine(folder, site)
        try:
            try:
                until(machine.is_up, BOOT_SECONDS)
            except AssertionError as error:  # nothing of the service is in the machine yet
                cannot("boot a machine", error)
            yield machine
        finally:
            machine.power_off()


@pytest.fixture(scope="module")
def installed(machine: Machine) -> Machine:
    """Install the service as docs/install.md says. The second time changes nothing."""
    commands = block("install.md", "With systemd")
    for _ in range(2):
        machine.run(commands.replace("ADDRESS", "/repository"))
    return machine


def test_staff_work_with_a_service_that_runs_in_its_sandbox(installed: Machine) -> None:
    """The service has no capability and a read-only root, and adds, imports and exports all the same."""
    do_what_staff_do(installed.site)
    refused = installed.site.get("/tidak-ada")
    assert "/tidak-ada 404 " in installed.run(
        f"journalctl -t mahasiswa --grep {refused.headers['x-request-id']}"
    )
    installed.run(f"systemd-analyze security --threshold={EXPOSURE_MAX_PERCENT} {UNIT}")
    process = f"/proc/{installed.property('MainPID')}"
    status = installed.run(f"cat {process}/status").splitlines()
    assert {"CapBnd:\t" + "0" * 16, "NoNewPrivs:\t1", "Seccomp:\t2"} <= set(status)
    mounts = (line.split() for line in installed.run(f"cat {process}/mountinfo").splitlines())
    (options,) = [mount[5].split(",") for mount in mounts if mount[4] == "/"]
    assert "ro" in options
    folder = installed.in_root(DATABASE).parent
    files = [folder, *folder.iterdir(), installed.in_root(BACKUPS), installed.newest_backup()]
    others = {path.stat().st_mode & 0o077 for path in files}
    assert others == {0}
    assert {path.stat().st_uid for path in files} == {folder.stat().st_uid}
    assert installed.in_root(SETTINGS).stat().st_mode & 0o777 == 0o640


def test_the_service_is_back_after_a_kill_of_its_main_process(installed: Machine) -> None:
    """It answers within 3 seconds with the same records; on a slow machine, in the time of two starts."""
    began = time.monotonic()
    installed.run(f"systemctl restart {UNIT}")
    usual = time.monotonic() - began
    before = installed.site.records
    main = installed.property("MainPID")
    installed.run(f"systemctl kill --kill-whom=main --signal=KILL {UNIT}")
    until(lambda: not is_well(installed.site))
    until(lambda: is_well(installed.site), max(BACK_SECONDS, 2 * usual))
    assert installed.site.records == before
    assert installed.property("MainPID") != main


def test_a_wrong_setting_is_reported_once_and_the_check_of_each_hour_fails(
    installed: Machine,
) -> None:
    """The unit fails with exit code 2 and is not started again. With a right setting it starts."""
    assert "mahasiswa-doctor.timer" in installed.run("systemctl list-timers")
    installed.run("systemctl start mahasiswa-doctor")
    installed.run(f"echo PORT=http >> {SETTINGS}; ! systemctl restart mahasiswa 2>&1")
    assert (
        installed.property("ActiveState") == "failed"
    )  # between two starts it would be "activating"
    assert installed.property("ExecMainStatus") == "2"
    assert installed.property("NRestarts") == "0"
    assert "PORT must be" in installed.run(f"journalctl --unit={UNIT} --lines=20")
    installed.run("! systemctl start mahasiswa-doctor 2>&1")
    assert "mahasiswa-doctor.service" in installed.run("systemctl --failed")
    installed.run(f"sed -i /^PORT=/d {SETTINGS}; systemctl restart mahasiswa")
    installed.run("systemctl start mahasiswa-doctor")
    assert is_well(installed.site)


def test_a_lost_database_is_restored_with_its_records(installed: Machine) -> None:
    """The start is refused in one line, which names the remedy. The procedures of keep.md are typed as they stand."""
    expected = installed.site.records
    installed.run(block("keep.md", "Back up"))
    file = installed.newest_backup()
    assert records_of(file) == expected
    installed.run(f"systemctl stop mahasiswa; rm -r {DATABASE}*; ! systemctl start mahasiswa 2>&1")
    assert f"restore {BACKUPS}/{file.name}" in installed.run(f"journalctl --unit={UNIT} --lines=5")
    restore = block("keep.md", "Restore")
    installed.run(restore.replace("FILE", f"{BACKUPS}/{file.name}"))
    installed.run(f"systemctl restart mahasiswa; {block('keep.md', 'Check')}")
    assert installed.site.records == expected


def test_back_ups_go_to_another_disk_and_its_loss_does_not_stop_the_service(
    installed: Machine,
) -> None:
    """The service itself writes there, out of its sandbox. `doctor` reports the loss."""
    commands = block("keep.md", "Back up to another disk")
    before = installed.in_root(SETTINGS).read_text("utf-8")
    installed.run(f"mkdir /mnt/usb; mount -t tmpfs disk /mnt/usb; {commands}")
    until(lambda: installed.run("ls /mnt/usb/mahasiswa").endswith(".db\n"))
    installed.run("umount /mnt/usb; systemctl restart mahasiswa")
    assert is_well(installed.site)
    installed.run(f"! {COMMAND} doctor")
    installed.in_root(SETTINGS).write_text(before, "utf-8")
    installed.run("systemctl restart mahasiswa")


def test_the_list_of_before_an_upgrade_comes_back_with_the_old_version(installed: Machine) -> None:
    """The next version changes the tables, so its start makes a copy first, which its log names. Both run twice."""
    upgrade = block("keep.md", "Upgrade")
    roll_back = block("keep.md", "Roll back")
    expected = installed.site.records
    with (installed.repository / SCHEMA).open("a") as file:
        file.write(NEXT_VERSION)
    run(*GIT, "commit", "--quiet", "--all", "--message=next", cwd=installed.repository)
    old = installed.run("git -C /srv/mahasiswa/app rev-parse HEAD").strip()
    for number in range(2):
        installed.run(upgrade)
        assert installed.site.records == expected
        led_to(installed.site.add(f"later{number}", "Siti", "Solo"))
        log = installed.run(f"journalctl --unit={UNIT} --lines=10 --output=cat")
        *_, copy = re.findall(r"(\S+) is the list before the upgrade", log)
        installed.run(roll_back.replace("OLD", old).replace("FILE", copy))
        assert installed.site.records == expected


def test_nginx_asks_for_a_password_and_names_the_person_in_the_history(installed: Machine) -> None:
    """Without the password the answer is 401, and no other user can ask the service past nginx.

    With it, an addition is in the history with the person's name.
    """
    key = f"/etc/ssl/private/{NAME}.key"
    certificate = f"/etc/ssl/{NAME}.pem"
    names = f"-subj /CN={NAME} -addext subjectAltName=DNS:{NAME}"
    installed.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} {names} -days 2 2>&1"
    )
    settings = installed.in_root(SETTINGS).read_text("utf-8")
    commands = block("install.md", "TLS and a password with nginx")
    for _ in range(2):
        installed.run(f"{{ {commands} }} 2>&1 <<< $'{PASSWORD}\\n{PASSWORD}'")

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
    form = f"--data-urlencode nim={NIM} --data nama=Siti --data alamat=Solo"
    forged = "--header 'X-Remote-User: Rektor'"
    assert answer(known, forged, form, path="/mahasiswa/add").startswith("HTTP/2 302")
    edit = f"/mahasiswa/edit/{NIM.replace('/', '%2F')}"
    assert answer(known, path=edit).startswith("HTTP/2 200")
    assert "oleh <bdi>tu</bdi>" in answer(known, path="/mahasiswa/riwayat")
    installed.in_root(SETTINGS).write_text(settings, "utf-8")
    installed.run("systemctl restart mahasiswa")
    installed.site.delete(NIM)


def test_a_list_moves_to_postgresql(installed: Machine, postgres: str) -> None:
    """All records are there, and the service uses them."""
    commands = block("cluster.md", "Move from SQLite to PostgreSQL, and back")
    expected = installed.site.records
    edit = f"sed -i 's,^DATABASE_URL=.*,DATABASE_URL={postgres},'"
    installed.run(commands.replace("editor", edit))
    assert installed.site.records == expected
    installed.run(f"sed -i 's,^DATABASE_URL=.*,DATABASE_URL=sqlite:///{DATABASE},' {SETTINGS}")
    installed.run("systemctl restart mahasiswa")


def test_uninstalling_leaves_only_the_back_ups_which_belong_to_root(installed: Machine) -> None:
    """The newest one has all records. With a full disk for back-ups, nothing is removed."""
    expected = installed.site.records
    commands = block("keep.md", "Uninstall")
    installed.run(f"mount -t tmpfs -o size=64k,uid=mahasiswa,mode=700 tmpfs {BACKUPS}")
    installed.run(f"! {{ {commands} }} 2>&1")
    assert installed.site.records == expected
    installed.run(f"umount {BACKUPS}; {commands}")
    find = "find / -xdev \\( -path /proc -o -path /repository -o -path /etc/nginx -o -path /var/cache \\) -prune -o -name '*mahasiswa*' -print"
    left = installed.run(find).split()
    assert [path for path in left if not path.startswith(BACKUPS)] == []
    assert records_of(installed.newest_backup()) == expected
    assert {installed.in_root(path).stat().st_uid for path in left} == {0}
