"""The systemd units of packaging/systemd, in a small Debian that systemd-nspawn boots."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from attack import until
from harness import Site, free_port
from installed import do_what_staff_do, is_well, records, run
from operators import records_of
from processes import children

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "packaging" / "systemd"
LITESTREAM = Path(sys.executable).with_name("litestream")
COPY = "/backup/litestream"
PACKAGES = ("systemd", "dbus", "dash", "coreutils", "findutils")
BOOT_SECONDS = 30.0
BACK_SECONDS = 3.0
EXPOSURE_MAX_PERCENT = 20

pytestmark = pytest.mark.torture


class Machine:
    """A Debian with the service's units, booted by systemd-nspawn. It shares the network of this computer."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self.settings = root / "etc" / "mahasiswa.env"
        self.settings.write_text(f"PORT={self.port}\nSAME_ORIGIN_ONLY=1\n", "utf-8")
        self._process = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe", "--boot", f"-D{root}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a hang-up of the machine's console must not reach this process
        )

    def site(self) -> Site:
        """Return a visitor to the service."""
        return Site(f"http://127.0.0.1:{self.port}")

    def run(self, *command: str) -> str:
        """Run a command in the machine that must succeed; return its standard output."""
        (init,) = children(self._process.pid)
        return run("nsenter", f"--target={init}", "--all", "--", *command)

    def property(self, name: str, unit: str = "mahasiswa.service") -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", f"--property={name}", "--value", unit).strip()

    def power_off(self) -> None:
        """Shut the machine down: systemd-nspawn tells its init about SIGTERM."""
        self._process.terminate()
        try:
            self._process.wait(BOOT_SECONDS)
        finally:
            self._process.kill()


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Install the service as docs/install.md and docs/reference.md say, and boot."""
    if missing := [tool for tool in ("mmdebstrap", "nsenter", "systemd-nspawn") if not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("only root may boot a machine")
    if not LITESTREAM.exists():
        pytest.skip("litestream is not installed: make .venv/dev.stamp")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
        (wheel,) = Path(folder).glob("*.whl")
        make_root = ROOT / "packaging" / "image" / "root.sh"
        run("env", f"PYTHON={sys.executable}", make_root, root, wheel, *PACKAGES)
        for file, line in (("passwd", "messagebus:x:101:101::/:/usr/sbin/nologin"), ("group", "messagebus:x:101:")):
            with (root / "etc" / file).open("a") as users:  # no script of the package dbus has run
                users.write(f"{line}\n")
        program = root / "srv" / "mahasiswa" / "app" / ".venv" / "bin" / "mahasiswa"
        program.parent.mkdir(parents=True)
        program.symlink_to("/usr/bin/mahasiswa")
        (root / "etc" / "os-release").write_text("ID=debian\n")
        (root / "etc" / "machine-id").write_text("0123456789abcdef" * 2 + "\n")
        shutil.copytree(UNITS, root / "etc" / "systemd" / "system", dirs_exist_ok=True)
        install_litestream(root)
        run("install", UNITS / "mahasiswa-run", root / "usr" / "local" / "bin")
        enabled = ("mahasiswa.service", "mahasiswa-litestream.service")
        run("systemctl", f"--root={root}", "set-default", "multi-user.target")
        run("systemctl", f"--root={root}", "enable", *enabled)
        machine = Machine(root)
        try:
            with machine.site() as site:
                until(lambda: is_well(site), BOOT_SECONDS)
            yield machine
        finally:
            machine.power_off()


def install_litestream(root: Path) -> None:
    """Install Litestream as docs/reference.md says. The copy is in a folder."""
    run("install", "-D", LITESTREAM, root / "usr" / "local" / "bin" / "litestream")
    shutil.copy(ROOT / "packaging" / "litestream.yml", root / "etc" / "mahasiswa-litestream.yml")
    run("chroot", root, "install", "-d", "-o", "mahasiswa", "-m", "700", COPY)


def test_staff_work_with_a_service_that_runs_in_its_sandbox(machine: Machine) -> None:
    """The service has no capability and a read-only root, and adds, imports and exports all the same."""
    with machine.site() as site:
        do_what_staff_do(site)
    machine.run("systemd-analyze", "security", f"--threshold={EXPOSURE_MAX_PERCENT}", "mahasiswa.service")
    process = f"/proc/{machine.property('MainPID')}"
    status = machine.run("cat", f"{process}/status").splitlines()
    assert {"CapBnd:\t" + "0" * 16, "NoNewPrivs:\t1", "Seccomp:\t2"} <= set(status)
    (root,) = [
        line.split() for line in machine.run("cat", f"{process}/mountinfo").splitlines() if line.split()[4] == "/"
    ]
    assert "ro" in root[5].split(",")
    folder = machine.root / "var" / "lib" / "mahasiswa"
    files = [folder, *folder.iterdir()]
    assert {"mahasiswa.db", "mahasiswa.db-wal", "mahasiswa.db-shm"} <= {path.name for path in files}
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


def test_the_main_process_is_back_after_a_kill(machine: Machine) -> None:
    """The service answers within 3 seconds after its main process was killed, with the same records."""
    with machine.site() as site:
        before, main = records(site), machine.property("MainPID")
        machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "mahasiswa.service")
        until(lambda: not is_well(site))
        until(lambda: is_well(site), BACK_SECONDS)
        assert machine.property("MainPID") != main
        assert records(site) == before


def test_a_worker_is_back_after_a_kill(machine: Machine) -> None:
    """The service answers within 3 seconds after its worker was killed, with the same main process."""

    def worker() -> str:
        return machine.run("cat", f"/proc/{main}/task/{main}/children").strip()

    with machine.site() as site:
        before, main = records(site), machine.property("MainPID")
        killed = worker()
        machine.run("sh", "-c", f"kill -9 {killed}")
        until(lambda: worker() not in ("", killed) and is_well(site), BACK_SECONDS)
        assert (machine.property("MainPID"), records(site)) == (main, before)


def test_a_wrong_setting_is_reported_once(machine: Machine) -> None:
    """The unit fails with exit code 2 and is not started again. With a right setting it starts."""
    right = machine.settings.read_text("utf-8")
    machine.settings.write_text("PORT=http\n", "utf-8")
    assert machine.run("sh", "-c", "systemctl restart mahasiswa.service 2>&1; echo $?").endswith("\n1\n")
    assert machine.property("ActiveState") == "failed"  # between two starts it would be "activating"
    assert (machine.property("ExecMainStatus"), machine.property("NRestarts")) == ("2", "0")
    assert "PORT must be" in machine.run("journalctl", "--unit=mahasiswa.service", "--lines=5")

    machine.settings.write_text(right, "utf-8")
    machine.run("systemctl", "start", "mahasiswa.service")
    with machine.site() as site:
        until(lambda: is_well(site))


def test_commands_have_the_settings_and_the_user_of_the_service(machine: Machine) -> None:
    """mahasiswa-run reads the file as systemd does, where a shell would cut an address at &. Its exit code comes back."""
    folder = machine.root / "var" / "lib" / "mahasiswa-backup"
    with machine.site() as site:
        expected = records(site)
    first = folder / machine.run("mahasiswa-run", "backup").partition(": ")[0].rpartition("/")[2]
    assert records_of(first) == expected
    assert [(path.stat().st_mode & 0o077, path.stat().st_uid) for path in (folder, first)] == [(0, 10001)] * 2
    said = machine.run("mahasiswa-run", "doctor")
    assert f"The service answers on port {machine.port}." in said
    assert f"The newest back-up, /var/lib/mahasiswa-backup/{first.name}, is 0.0 hours old." in said
    right = machine.settings.read_text("utf-8")
    machine.settings.write_text(f"{right}DATABASE_URL=sqlite:////var/lib/mahasiswa/a?b=c&d=$e.db\n", "utf-8")
    try:
        command = "cd /root && mahasiswa-run export - 2>&1; echo $?"
        assert machine.run("sh", "-c", command).splitlines() == [
            "database: /var/lib/mahasiswa/a?b=c&d=$e.db",
            "mahasiswa: /var/lib/mahasiswa/a?b=c&d=$e.db does not exist",
            "1",
        ]
    finally:
        machine.settings.write_text(right, "utf-8")


def test_the_unit_is_active_when_requests_are_answered_and_outlives_a_hang_up(machine: Machine) -> None:
    """So `systemctl start` fails if the service cannot start, and the list is backed up without a timer."""
    with machine.site() as site:
        machine.run("systemctl", "restart", "mahasiswa.service")
        assert is_well(site)
        main = machine.property("MainPID")
        machine.run("systemctl", "kill", "--signal=HUP", "mahasiswa.service")
        assert site.add("hup", "Siti", "Solo").status_code == 302
        assert machine.property("MainPID") == main
    folder = machine.root / "var" / "lib" / "mahasiswa-backup"
    assert list(folder.glob("mahasiswa-*.db"))
    assert machine.run("journalctl", "--unit=mahasiswa.service", "--priority=info", "--grep=back-up", "--output=cat")


def test_litestream_copies_each_change_from_its_sandbox(machine: Machine) -> None:
    """Its unit starts with the machine. An addition is in a private copy, which restores to a list with that addition."""
    unit, database = "mahasiswa-litestream.service", "/var/lib/mahasiswa/mahasiswa.db"
    copy, restored = machine.root / COPY.lstrip("/"), machine.root / "restored.db"
    with machine.site() as site:
        assert site.add("litestream", "Siti", "Solo").status_code == 302
        expected = records(site)

    def is_copied() -> bool:
        restored.unlink(missing_ok=True)
        machine.run("litestream", "restore", "-config", "/etc/mahasiswa-litestream.yml", "-o", "/restored.db", database)
        return records_of(restored) == expected

    until(lambda: any(copy.rglob("*.ltx")))
    until(is_copied)
    assert (machine.property("ActiveState", unit), machine.property("NRestarts", unit)) == ("active", "0")
    machine.run("systemd-analyze", "security", f"--threshold={EXPOSURE_MAX_PERCENT}", unit)
    assert {path.stat().st_mode & 0o077 for path in [copy, *copy.rglob("*")]} == {0}
