"""Runs the cluster of docs/cluster.md on this machine: etcd, Patroni, PostgreSQL, HAProxy and the service, on five hosts.

A host has its own network, process ids and folders (Linux namespaces). All of it ends with the process that made it.
"""

import ctypes
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
from harness import without_settings
from processes import NAMESPACES, Closing, cannot, end_with_parent, run, until

PACKAGING = Path(__file__).parents[1] / "packaging" / "patroni"
PROGRAMS = (
    "/usr/bin/etcd",
    "/usr/bin/patroni",
    "/usr/sbin/haproxy",
    "/usr/lib/postgresql/15/bin/postgres",
    "ip",
)
PASSWORD = "secret"

# Addresses that are reserved for documents (RFC 5737). They exist in the namespaces only, and no route leads out.
DATABASE_HOSTS = {"db1": "192.0.2.11", "db2": "192.0.2.12", "db3": "192.0.2.13"}
SERVICE_HOSTS = {"app1": "192.0.2.21", "app2": "192.0.2.22"}
ADDRESSES = DATABASE_HOSTS | SERVICE_HOSTS

WHOLE_TIMEOUT_SECONDS = 120.0
MISSING_CARD = "02:00:00:00:00:01"
"""The hardware address of no network card."""

# `sleep` is process 1 of the host. It ignores SIGCHLD, so the kernel reaps orphans. Otherwise Patroni would wait forever
# for a PostgreSQL that has ended. `trap '' CHLD` of the shell does not reach `sleep`.
START_HOST = """
set -e
for path in etc/hosts etc/patroni etc/haproxy run var/lib/etcd var/lib/postgresql; do
    mount --bind "$1/$path" "/$path"
done
hostname "$2"
ip link set lo up
echo ready
exec env --ignore-signal=CHLD sleep infinity
"""

UNSHARE = (
    "unshare",
    "--net",
    *NAMESPACES,
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    START_HOST,
    "sh",
)


class Host(Closing):
    """A host without programs. `folder` holds its own files and the output of its programs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self._programs: list[subprocess.Popen[bytes]] = []
        _write_files(name, folder)
        self._unshare = subprocess.Popen(
            [*UNSHARE, folder, name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - a single prctl call; nothing else ends it with killed tests
        )
        assert self._unshare.stdout
        if self._unshare.stdout.readline() != b"ready\n":
            self.close()
            raise RuntimeError(f"{name} does not start")
        (self.pid,) = (child.pid for child in psutil.Process(self._unshare.pid).children())

    def start(self, *command: str, user: str = "root", environment: Mapping[str, str]) -> None:
        """Start a program. Its output goes to a file in the folder of the host."""
        with (self.folder / f"{Path(command[0]).name}.log").open("ab") as log:
            output: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            whole = {"PATH": os.environ["PATH"], **environment}
            self._programs.append(
                subprocess.Popen([*self._enter(user), *command], env=whole, cwd="/", **output)
            )

    def run(self, *command: str, environment: Mapping[str, str]) -> str:
        return run(
            *self._enter("postgres"),
            *command,
            cwd="/",
            env={"PATH": os.environ["PATH"], **environment},
        )

    def network(self, command: str) -> None:
        """Run `ip`. Only the network is the host's, so that it can name a process of another host."""
        run("nsenter", f"--target={self.pid}", "--net", "ip", *command.split())

    def processes(self, program: str = "") -> list[psutil.Process]:
        """Return the processes whose command line contains `program`, except process 1."""
        own = Path(f"/proc/{self.pid}/ns/pid").stat().st_ino
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):  # it has ended meanwhile
                is_here = (
                    Path(f"/proc/{process.pid}/ns/pid").stat().st_ino == own
                    and process.pid != self.pid
                )
                if (
                    is_here
                    and program in " ".join(process.cmdline())
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(process)
        return found

    def freeze(self, program: str = "") -> list[psutil.Process]:
        """Suspend these processes, also those that they start meanwhile; return them."""
        frozen: list[psutil.Process] = []
        while more := [process for process in self.processes(program) if process not in frozen]:
            for process in more:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            frozen += more
        return frozen

    def kill(self, program: str = "") -> None:
        """Kill these processes. They are suspended first, so that none sees another one die."""
        for process in self.freeze(program):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        until(lambda: not self.processes(program))

    def close(self) -> None:
        self._unshare.kill()
        self._unshare.wait()
        for program in self._programs:
            program.kill()  # nsenter may suspend itself with its child, also after the child's end
            program.wait()
        assert self._unshare.stdout
        self._unshare.stdout.close()

    def _enter(self, user: str) -> list[str]:
        entry = pwd.getpwnam(user)
        as_user = (f"--setuid={entry.pw_uid}", f"--setgid={entry.pw_gid}")
        return ["nsenter", f"--target={self.pid}", "--net", *NAMESPACES, *as_user, "--"]


class Cluster(Closing):
    """Three hosts with etcd, Patroni and PostgreSQL, and two with HAProxy, on the switch of `on_the_switch`."""

    def __init__(self, folder: Path) -> None:
        with ExitStack() as stack:
            self.switch = stack.enter_context(Host("switch", folder / "switch"))
            self.hosts = {
                name: stack.enter_context(Host(name, folder / name)) for name in ADDRESSES
            }
            try:
                self.switch.network("link add name switch0 type bridge")
                for host in self.hosts.values():
                    self.switch.network(
                        f"link add name {host.name} type veth peer name eth0 netns {host.pid}"
                    )
            except AssertionError as error:
                cannot("connect hosts by a bridge", error)
            self.switch.network("link set switch0 up")
            self.switch.network("addr add 192.0.2.1/24 dev switch0")
            for host in self.hosts.values():
                self.switch.network(f"link set {host.name} master switch0 up")
                host.network(f"addr add {ADDRESSES[host.name]}/24 dev eth0")
                host.network("link set eth0 up")
            for name in DATABASE_HOSTS:
                self.start_database(self.hosts[name])
            for name in SERVICE_HOSTS:
                self.hosts[name].start(
                    "/usr/sbin/haproxy", "-db", "-f", "/etc/haproxy/haproxy.cfg", environment={}
                )
            self._hosts = stack.pop_all()

    def start_database(self, host: Host) -> None:
        """Start what runs on a database host, as Debian's units do."""
        settings = {"ETCD_DATA_DIR": "/var/lib/etcd/default", **_variables(host, "etcd")}
        host.start("/usr/bin/etcd", user="etcd", environment=settings)
        variables = _variables(host, "patroni_env.conf")
        host.start(
            "/usr/bin/patroni", "/etc/patroni/config.yml", user="postgres", environment=variables
        )

    @contextmanager
    def on_the_switch(self) -> Iterator[None]:
        """Move this thread, and the threads and processes that it starts, to the network of the switch."""
        with (
            Path("/proc/thread-self/ns/net").open() as before,
            Path(f"/proc/{self.switch.pid}/ns/net").open() as there,
        ):
            _set_network(there.fileno())
            try:
                yield
            finally:
                _set_network(before.fileno())

    def create_database(self, primary: Host) -> None:
        """Create the role and an empty database, as docs/cluster.md tells."""
        self.sql(primary, "DROP DATABASE IF EXISTS mahasiswa WITH (FORCE)")
        self.sql(primary, "DROP ROLE IF EXISTS mahasiswa")
        self.sql(primary, f"CREATE ROLE mahasiswa LOGIN PASSWORD '{PASSWORD}'")
        self.sql(primary, "CREATE DATABASE mahasiswa OWNER mahasiswa")

    def sql(self, host: Host, statements: str) -> str:
        return host.run(
            "psql",
            "--no-psqlrc",
            "--tuples-only",
            "--command",
            statements,
            "postgres",
            environment={},
        )

    def start_services(self, address: str) -> list[str]:
        """Start the service on each of its hosts; return their addresses."""
        environment = {**without_settings(), "DATABASE_URL": address, "LOG_LEVEL": "warning"}
        for name in SERVICE_HOSTS:
            self.hosts[name].start(sys.executable, "-m", "mahasiswa", environment=environment)
        urls = [f"http://{address}:3000" for address in SERVICE_HOSTS.values()]
        for url in urls:
            until(partial(_is_ok, f"{url}/sehat"))
        return urls

    def stop_services(self) -> None:
        for name in SERVICE_HOSTS:
            self.hosts[name].kill("mahasiswa")

    def wait_until_whole(self) -> Host:
        """Wait until all database hosts agree that one is the primary and the others follow; return the primary."""
        return until(self._primary, WHOLE_TIMEOUT_SECONDS)

    def wait_for_another(self, primary: Host) -> None:
        others = [
            f"http://{address}:8008/primary"
            for name, address in DATABASE_HOSTS.items()
            if name != primary.name
        ]
        until(lambda: any(map(_is_ok, others)), 60)

    def close(self) -> None:
        self._hosts.close()

    def _primary(self) -> Host | None:
        views = [_members(address) for address in DATABASE_HOSTS.values()]
        if views.count(views[0]) < len(views) or len(views[0]) < len(DATABASE_HOSTS):
            return None
        roles, names, states, timelines = zip(*views[0], strict=True)
        if roles != ("leader", "replica", "sync_standby") or not {*states} <= {
            "running",
            "streaming",
        }:
            return None
        return self.hosts[names[0]] if len({*timelines}) == 1 else None


# ---- faults: each returns a function that ends it
def killed(cluster: Cluster, primary: Host) -> Callable[[], None]:
    """All programs of the primary's host are killed, as if it had no power."""
    primary.kill()
    return lambda: cluster.start_database(primary)


def unplugged(cluster: Cluster, primary: Host) -> Callable[[], None]:
    """The primary's host has no network."""
    cluster.switch.network(f"link set {primary.name} down")
    return lambda: cluster.switch.network(f"link set {primary.name} up")


def partitioned(cluster: Cluster, primary: Host) -> Callable[[], None]:
    """The primary's host reaches no database host and no etcd but its own. The service still reaches it."""
    others = [cluster.hosts[name] for name in DATABASE_HOSTS if name != primary.name]
    pairs = [(primary, other) for other in others] + [(other, primary) for other in others]
    for host, other in pairs:  # packets go to a network card that does not exist
        host.network(
            f"neigh replace {ADDRESSES[other.name]} lladdr {MISSING_CARD} nud permanent dev eth0"
        )

    def reconnect() -> None:
        for host, other in pairs:
            host.network(f"neigh del {ADDRESSES[other.name]} dev eth0")

    return reconnect


def frozen(_cluster: Cluster, primary: Host, program: str = "") -> Callable[[], None]:
    """All programs of the primary's host stand still, and go on at the end, as if its virtual machine was paused."""
    processes = primary.freeze(program)

    def thaw() -> None:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()

    return thaw


def switched_over(_cluster: Cluster, primary: Host) -> Callable[[], None]:
    """Nothing is broken: the operator asks for another primary."""
    command = ("patronictl", "-c", "/etc/patroni/config.yml", "switchover", "--force")
    primary.run(*command, environment=_variables(primary, "patroni_env.conf"))
    return lambda: None


def _write_files(name: str, folder: Path) -> None:
    """Write the files of a host: those of packaging/patroni with its name and the password, and empty folders."""
    hosts = "".join(f"{address} {host}\n" for host, address in ADDRESSES.items())
    for path in (
        "etc/patroni",
        "etc/haproxy",
        "run/postgresql",
        "var/lib/etcd",
        "var/lib/postgresql",
    ):
        (folder / path).mkdir(parents=True)
    (folder / "etc/hosts").write_text(f"127.0.0.1 localhost\n{hosts}")
    shutil.copy(PACKAGING / "config.yml", folder / "etc/patroni")
    shutil.copy(PACKAGING / "haproxy.cfg", folder / "etc/haproxy")
    for file in ("etcd", "patroni_env.conf"):
        text = (
            (PACKAGING / file).read_text().replace("@HOST@", name).replace("@PASSWORD@", PASSWORD)
        )
        (folder / "etc" / file).write_text(text)
    for path, user in (
        ("run/postgresql", "postgres"),
        ("var/lib/postgresql", "postgres"),
        ("var/lib/etcd", "etcd"),
    ):
        shutil.chown(folder / path, user)


def _variables(host: Host, file: str) -> dict[str, str]:
    """Read a file of environment variables as systemd does."""
    lines = (host.folder / "etc" / file).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def _members(address: str) -> list[tuple[str, str, str, int]]:
    """Return role, name, state and timeline of each member, as the Patroni at this address knows them."""
    try:
        members = httpx.get(f"http://{address}:8008/cluster", timeout=2, trust_env=False).json()[
            "members"
        ]
    except (httpx.HTTPError, ValueError, KeyError):
        return []
    return sorted(
        (each["role"], each["name"], each["state"], each.get("timeline", 0)) for each in members
    )


def _is_ok(url: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=2, trust_env=False).status_code == 200
    return False


def _set_network(file: int) -> None:
    # CLONE_NEWNET; os.setns begins with Python 3.12.
    if ctypes.CDLL(None, use_errno=True).setns(file, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")
