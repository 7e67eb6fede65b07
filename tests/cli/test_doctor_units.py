"""`mahasiswa-run doctor` finds the faults of the units. Its systemd is a stand-in; the service and the files are real.

tests/install/test_machine.py makes such faults on a booted machine, and types the remedies there.
"""

import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from harness import Service, free_port
from operators import COMMAND, TWO, Operator
from processes import finished
from units import ROOT, RUN, pretend_other_unit, pretend_unit

UNIT = "mahasiswa.service"
SOURCE = ROOT / "packaging" / "systemd" / UNIT
# The unit gives one worker enough.
MEMORY = str(int(re.findall(r"^MemoryMax=(\d+)M", SOURCE.read_text(), re.MULTILINE)[0]) << 20)
DOCTOR, LITESTREAM = "mahasiswa-doctor.timer", "mahasiswa-litestream.service"
DUMPS = "mahasiswa-pgdump.timer"


class Machine(Operator):
    """An installation in order: its service answers, has settings, and starts with the computer."""

    def __init__(self, folder: Path, service: Service) -> None:
        super().__init__(folder)
        self.service = service
        self.settings = folder / "mahasiswa.env"
        self.settings.touch(mode=0o600)
        self.properties = {"UnitFileState": "enabled", "MemoryMax": MEMORY}
        self.pid = service.pid
        self.given = dict(service.environment)
        pretend_unit(folder, {})

    def stops(self) -> None:
        """Let the service have another port, on which nothing runs."""
        self.pid = 0
        self.given["PORT"] = str(free_port())

    def wrong(self) -> list[str]:
        """Return what `mahasiswa-run doctor` finds wrong. Its exit code must say the same."""
        unit = pretend_unit(
            self.folder, self.given, pid=self.pid, file=self.settings, **self.properties
        )
        answer = finished(*RUN, "doctor", cwd=self.folder, env=self.environment | unit)
        found = re.findall("^WRONG  (.*)", answer.stdout, re.MULTILINE)
        assert answer.returncode == bool(found), answer.stderr
        return found


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    operator = Operator(tmp_path_factory.mktemp("list"))
    operator.fill(TWO)
    operator.keep_backups()
    operator.done("backup")
    with operator.serving(COMMAND) as service:
        yield service


@pytest.fixture
def machine(answering: Service, tmp_path: Path) -> Machine:
    return Machine(tmp_path, answering)


def ended(count: int, seconds_ago: int) -> dict[str, str]:
    began = int(time.time()) - seconds_ago
    return {"NRestarts": str(count), "ExecMainStartTimestamp": f"@{began}"}


ENABLE = "systemctl enable --now"
FAULTS = {
    "a crash loop": (
        ended(4, 5),
        "The service has ended 4 times, the last time within an hour",
        "journalctl -u mahasiswa -p err -n 20",
    ),
    "not enabled": (
        {"UnitFileState": "disabled"},
        f"{UNIT} does not start with the computer",
        f"{ENABLE} {UNIT}",
    ),
    "a changed unit": (
        {"NeedDaemonReload": "yes"},
        f"systemd has not read the newest files of {UNIT}",
        "systemctl daemon-reload && systemctl restart mahasiswa",
    ),
    "little memory": (
        {"MemoryMax": str(1024 << 20)},
        "1 workers may take 1936 MB, and MemoryMax= has 1024 MB",
        "systemctl set-property mahasiswa MemoryMax=1936M",
    ),
}


@pytest.mark.parametrize(("properties", "said", "command"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_unit_is_found_and_a_command_stands_at_the_end_of_the_line(
    machine: Machine, properties: dict[str, str], said: str, command: str
) -> None:
    machine.properties |= properties
    (line,) = machine.wrong()
    assert said in line
    assert line.endswith(f": {command}")


@pytest.mark.parametrize("name", [UNIT, DOCTOR, "mahasiswa-alert@.service"])
def test_an_altered_unit_is_found(machine: Machine, name: str) -> None:
    """Each installed unit is compared with that of this version. A missing unit is no fault."""
    installed = machine.folder / "system"
    installed.mkdir()
    for unit in {UNIT, name}:
        shutil.copy(SOURCE.with_name(unit), installed)
    machine.properties["FragmentPath"] = str(installed / UNIT)
    assert machine.wrong() == []
    with (installed / name).open("a") as file:
        file.write("# altered\n")
    (line,) = machine.wrong()
    assert line.startswith(f"{installed / name} is not the unit of this version. ")
    restart = "systemctl try-restart mahasiswa mahasiswa-litestream"
    assert line.endswith(f": make -C {ROOT} install && {restart}")


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_a_stopped_service_is_found_if_it_is_enabled_or_has_settings(
    machine: Machine, state: str
) -> None:
    """A service that is neither enabled nor has settings is not in use yet, so its stop is no fault."""
    machine.stops()
    machine.properties["ActiveState"] = state
    (line,) = machine.wrong()
    assert line.startswith(f"The service is {state}. The reason: journalctl -u mahasiswa -n 20. ")
    assert line.endswith("Then run: systemctl restart mahasiswa")
    machine.properties["UnitFileState"] = "disabled"
    stopped, disabled = machine.wrong()
    assert stopped == line
    assert disabled.endswith(f"{ENABLE} {UNIT}")
    machine.settings.unlink()
    assert machine.wrong() == []


@pytest.mark.parametrize(
    "name", ["mahasiswa.env", "mahasiswa-litestream.env", "mahasiswa-litestream.yml"]
)
def test_public_settings_are_found(machine: Machine, name: str) -> None:
    """Settings that only a group may read are no fault. The command of the line mends it."""
    of_litestream = f"{machine.folder}/mahasiswa-litestream.env (ignore_errors=yes)"
    pretend_other_unit(machine.folder, LITESTREAM, EnvironmentFiles=of_litestream)
    file = machine.folder / name
    file.touch(mode=0o640)
    assert machine.wrong() == []
    file.chmod(0o644)
    (line,) = machine.wrong()
    assert line.startswith(f"Every user of this computer has rights on {file}. ")
    machine.type_remedy(line)
    assert machine.wrong() == []


OTHERS = {
    "the timer is disabled": (DOCTOR, {"UnitFileState": "disabled"}, f"{ENABLE} {DOCTOR}"),
    "the timer is stopped": (DOCTOR, {"ActiveState": "inactive"}, f"{ENABLE} {DOCTOR}"),
    "Litestream has stopped": (
        LITESTREAM,
        {"ActiveState": "activating"},
        "systemctl restart mahasiswa-litestream",
    ),
    "Litestream ends again and again": (
        LITESTREAM,
        ended(3, 5),
        "systemctl restart mahasiswa-litestream",
    ),
    "Litestream is not used": (LITESTREAM, {"UnitFileState": "disabled"}, ""),
}


@pytest.mark.parametrize(("name", "properties", "command"), OTHERS.values(), ids=OTHERS)
def test_another_unit_that_does_not_do_its_work_is_found(
    machine: Machine, name: str, properties: dict[str, str], command: str
) -> None:
    pretend_other_unit(machine.folder, name, **properties)
    found = machine.wrong()
    assert [line.rpartition(": ")[2] for line in found] == ([command] if command else [])


@pytest.mark.parametrize("state", ["enabled", "disabled"])
def test_a_list_in_postgresql_needs_the_timer_of_its_dumps(machine: Machine, state: str) -> None:
    machine.stops()
    machine.given["DATABASE_URL"] = f"postgresql://127.0.0.1:{free_port()}/mahasiswa"
    pretend_other_unit(machine.folder, DUMPS, UnitFileState=state)
    found = [line for line in machine.wrong() if DUMPS in line]
    assert found == [f"{DUMPS} is off. Run: {ENABLE} {DUMPS}"] * (state == "disabled")


def test_a_start_that_has_the_port_and_does_not_listen_yet_is_no_fault(machine: Machine) -> None:
    """It may upgrade a long list meanwhile."""
    machine.stops()
    machine.properties["ActiveState"] = "activating"
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", int(machine.given["PORT"])))
        assert machine.wrong() == []


HEALTHY = {
    "as it was installed": {},
    "ended often, two hours ago": ended(9, 7200),
    "ended once": ended(1, 5),
    "memory without a limit": {"MemoryMax": "infinity"},
}


@pytest.mark.parametrize("properties", HEALTHY.values(), ids=HEALTHY)
def test_a_sound_installation_is_silent(machine: Machine, properties: dict[str, str]) -> None:
    machine.properties |= properties
    assert machine.wrong() == []


def test_a_frozen_service_is_not_taken_for_another_program(machine: Machine) -> None:
    os.killpg(machine.service.pid, signal.SIGSTOP)
    try:
        (line,) = machine.wrong()
    finally:
        os.killpg(machine.service.pid, signal.SIGCONT)
    silence = f"No answer on port {machine.service.port} within 10 s"
    assert line == f"{silence}. If it is the service, run: systemctl restart mahasiswa"
