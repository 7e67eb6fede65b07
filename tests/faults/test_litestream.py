"""Litestream copies the database while the service runs. After the loss of the machine the copy has all acknowledged changes."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.operators import Operator
from faults.clients import changing
from harness import Service, led_to
from processes import Closing, run, until
from stores import execute, nims_of

CONFIGURATION = Path(__file__).parents[2] / "packaging" / "litestream.yml"
PROGRAM = Path(sys.executable).with_name("litestream")

LOSS_SECONDS = 2.0
"""Maximum age of a change that the copy may lack."""

WORK_SECONDS = 1.5
"""Time for which the clients go on between two faults. It is the subject of these tests, so they sleep."""

HISTORY = "SELECT * FROM mahasiswa_history ORDER BY id"
"""Every change of the list."""

INSTALL = "litestream is not installed: make .venv/dev.stamp"
pytestmark = [pytest.mark.torture, pytest.mark.skipif(not PROGRAM.exists(), reason=INSTALL)]


class Litestream(Closing):
    """The real program, with the configuration of packaging/ on a database and a copy in other folders."""

    def __init__(self, database: Path, copy: Path) -> None:
        text = CONFIGURATION.read_text("utf-8")
        for packaged, ours in (
            ("/var/lib/mahasiswa/mahasiswa.db", database),
            ("/backup/litestream", copy),
        ):
            assert text.count(packaged) == 1
            text = text.replace(packaged, str(ours))
        self._configuration = copy.with_name("litestream.yml")
        self._configuration.write_text(text, "utf-8")
        self._database = database
        self._log = copy.with_name("litestream.log").open("ab")
        self.start()

    def start(self) -> None:
        """Start the program, with the umask of the unit."""
        command = [str(PROGRAM), "replicate", "-config", str(self._configuration)]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log, umask=0o077)

    def end(self, number: int) -> None:
        self._process.send_signal(number)
        self._process.wait(20)

    def restore(self, to: Path) -> Path:
        """Restore the newest copy to a new file."""
        run(PROGRAM, "restore", "-config", self._configuration, "-o", to, self._database)
        return to

    def close(self) -> None:
        if self._process.poll() is None:
            self.end(signal.SIGKILL)
        self._log.close()


def test_what_was_acknowledged_two_seconds_before_the_loss_of_the_machine_is_in_the_copy(
    tmp_path: Path,
) -> None:
    """Under load, checkpoints, restarts and SIGKILL. On a new machine, it goes on with the same copy."""
    machine, copy = tmp_path / "mesin", tmp_path / "salinan"
    machine.mkdir()
    database = machine / "mahasiswa.db"
    with (
        Service(database, {"LOG_LEVEL": "error"}) as service,
        Litestream(database, copy) as litestream,
    ):
        with changing(service.url):
            for number in (signal.SIGTERM, signal.SIGKILL):
                time.sleep(WORK_SECONDS)
                litestream.end(number)
                execute(database, "PRAGMA wal_checkpoint(TRUNCATE)")
                litestream.start()
            service.restart()
            time.sleep(WORK_SECONDS)
            certain = execute(database, HISTORY)
            time.sleep(LOSS_SECONDS)
            litestream.end(signal.SIGKILL)
        service.kill()
        shutil.rmtree(machine)
        restored = litestream.restore(tmp_path / "kembali.db")
    stored, history = nims_of(restored), execute(restored, HISTORY)
    assert len(certain) > 100
    assert history[: len(certain)] == certain
    assert {path.stat().st_mode & 0o077 for path in [copy, *copy.rglob("*")]} == {0}

    machine.mkdir()
    Operator(machine).done("restore", str(restored))
    assert execute(database, HISTORY) == history
    with Service(database) as service, Litestream(database, copy) as litestream:
        with service.site() as site:
            led_to(site.add("sesudah", "Siti", "Solo"))

        def copied() -> bool:
            newest = litestream.restore(tmp_path / f"{time.monotonic_ns()}.db")
            return nims_of(newest) == stored | {"sesudah"}

        until(copied, 20)
