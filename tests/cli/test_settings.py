"""Settings: each one works, each wrong value is refused in one line, and each is explained to the operator."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from harness import SETTINGS, START_SECONDS, Page, Service, Site

from mahasiswa.settings import Settings

ROOT = Path(__file__).parents[2]
PREFIX = "/fakultas/mahasiswa-ti"

WRONG = {
    "HOST": ["nowhere.example", "256.1.1.1", "127.0.0.1:3000", "[::1]", " ", "*"],
    "PORT": ["0", "65536", "-1", "3000 ", "3e3", "http", "٣٠٠٠", "30000000000", "3000\n3001"],
    "DATABASE_URL": [
        "mahasiswa.db",
        "sqlite://mahasiswa.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "mysql://localhost/mahasiswa",
    ],
    "BASE_URL": [
        "localhost:3000",
        "ftp://kampus.example",
        "http://",
        "http://kampus.example:0",
        "http://kampus.example:65536",
        "http://kampus.example/a?b=c",
        "http://kampus.example/#a",
        "http://kampus.example//a",
        "http://kampus.example/a/../b",
        "http://kampus.example/a%20b",
        'http://kampus.example/"><script>',
        "http://kampus.example/\r\nSet-Cookie: a=b",
    ],
    "CDN_URL": [
        "bootstrap.min.css",
        "//cdn.example/a.css",
        "javascript:alert(1)",
        "https://cdn.example/a.css?v=<1>",
        "https://cdn.example/a.css#a",
        "https://cdn.example; script-src *",
        'https://cdn.example/"><script>',
    ],
    "CDN_INTEGRITY": ["md5-aGFsbG8=", "sha384", "sha384-", 'sha384-"><script>', "sha384-aGFsbG8= sha256-aGFsbG8="],
    "WORKERS": ["0", "65", "-1", "two", "1.5"],
    "SAME_ORIGIN_ONLY": ["2", "maybe", "-"],
    "LOG_LEVEL": ["loud", "1", "info "],
}

DECLARED = [variable for variable, _ in Settings.declared()]


def test_the_harness_takes_every_setting_away() -> None:
    """A service under test inherits no setting from whoever runs the tests."""
    assert set(SETTINGS) == set(DECLARED)


def test_every_setting_has_wrong_values() -> None:
    """A setting that is added later is refused in these tests too."""
    assert set(WRONG) == set(DECLARED)


@pytest.mark.parametrize("variable", DECLARED)
def test_every_setting_is_documented(variable: str) -> None:
    """An operator finds the setting by its name, as code, in the README or in docs/."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert any(re.search(rf"`{variable}(=[^`]*)?`", page.read_text("utf-8")) for page in pages)


def test_help_shows_every_setting_and_its_default() -> None:
    """`mahasiswa --help` has a line for each environment variable: its name, what it does, what it is if not set."""
    command = [str(Path(sys.executable).with_name("mahasiswa")), "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=True).stdout
    lines = dict(re.findall(r"^ +([A-Z][A-Z_]+) +(\S.*)$", shown, re.MULTILINE))
    assert lines.keys() == set(DECLARED)
    for line in lines.values():
        assert re.fullmatch(r"\S.{15,} \[\S+\]", line)
    for variable, default in {"PORT": "3000", "DATABASE_URL": "sqlite:///mahasiswa.db", "WORKERS": "1"}.items():
        assert lines[variable].endswith(f"[{default}]")


@pytest.mark.parametrize(
    ("variable", "value"), [(variable, value) for variable, values in WRONG.items() for value in values]
)
def test_a_wrong_value_is_one_line_and_exit_code_2(tmp_path: Path, variable: str, value: str) -> None:
    """The line names the setting and the value, nothing is written to standard output, and no file is made."""
    ended = run_to_the_end({variable: value}, tmp_path)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert re.fullmatch(rf"mahasiswa: {variable} must be [^\n]{{5,}}, not [^\n]+\n", ended.stderr)
    # As it is shown by a log that knows only ASCII, or as it stands.
    assert any(shown in ended.stderr for shown in (repr(value), ascii(value)))
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_value_is_refused_before_anything_else_is_tried(tmp_path: Path) -> None:
    """A wrong setting is what the operator is told, also where the port is taken and the folder is missing."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        environment = {
            "HOST": "127.0.0.1",
            "PORT": str(other.getsockname()[1]),
            "DATABASE_URL": "sqlite:///nowhere/mahasiswa.db",
            "SAME_ORIGIN_ONLY": "maybe",
        }
        ended = run_to_the_end(environment, tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("mahasiswa: SAME_ORIGIN_ONLY must be ")


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    """A database's address that is wrong may hold a password, which no log should have."""
    ended = run_to_the_end({"DATABASE_URL": "mysql://admin:rahasia@localhost/mahasiswa"}, tmp_path)
    assert ended.returncode == 2
    assert re.fullmatch(r"mahasiswa: DATABASE_URL must be [^\n]+\n", ended.stderr)
    assert "rahasia" not in ended.stderr


@pytest.mark.parametrize(
    ("level", "shown"), [(None, "rc"), ("debug", "rc"), ("info", "rc"), ("Warning", "r"), ("error", "")]
)
def test_log_level_is_what_is_written_to_standard_error(tmp_path: Path, level: str | None, shown: str) -> None:
    """`info` has a line for each change and each refusal, `warning` for refusals alone, `error` for neither."""
    with Service(tmp_path / "mahasiswa.db", {"LOG_LEVEL": level}) as service, service.site() as site:
        assert site.add("diterima", "Siti", "Solo").status_code == 302
        assert site.add("..", "Siti", "Solo").status_code == 400
        assert service.stop() == 0
        written = service.stderr()
    assert bool(re.search(r"POST /mahasiswa/add .*302", written)) == ("c" in shown)
    assert bool(re.search(r"POST /mahasiswa/add .*400", written)) == ("r" in shown)
    assert "Solo" not in written


def test_bytes_that_are_no_text_are_a_wrong_value(tmp_path: Path) -> None:
    """An environment holds bytes; those that are not UTF-8 are refused in one line like any other wrong value."""
    ended = run_to_the_end({"CDN_URL": os.fsdecode(b"https://cdn.example/\xff.css")}, tmp_path)
    assert ended.returncode == 2
    assert re.fullmatch(r"mahasiswa: CDN_URL must be [^\n]+\n", ended.stderr)


def test_an_empty_value_is_as_if_it_were_not_set(tmp_path: Path) -> None:
    """`NAME=` in a unit file or a compose file leaves the default."""
    empty = dict.fromkeys(("BASE_URL", "CDN_URL", "CDN_INTEGRITY", "WORKERS", "SAME_ORIGIN_ONLY"), "")
    with Service(tmp_path / "mahasiswa.db", empty) as service, service.site() as site:
        page = site.list()
        with Service(tmp_path / "other.db") as other, other.site() as same:
            assert same.list().html == page.html


def test_host_is_every_address_by_default(tmp_path: Path) -> None:
    """A service that is told no address answers on IPv6 and on IPv4."""
    if not socket.has_dualstack_ipv6() or not has_ipv6():
        pytest.skip("this machine has no IPv6 on its loopback device")
    with Service(tmp_path / "mahasiswa.db", {"HOST": None}) as service:
        assert answers("127.0.0.1", service.port)
        assert answers("::1", service.port)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_host_is_the_address_that_is_listened_on(tmp_path: Path, host: str) -> None:
    """An IPv4 address is not answered on IPv6, a loopback address not on another."""
    with Service(tmp_path / "mahasiswa.db", {"HOST": host}) as service:
        assert answers("127.0.0.1", service.port)
        assert not answers("::1", service.port)
        if sys.platform == "linux":  # where every 127.x.x.x is this machine
            assert answers("127.0.0.2", service.port) == (host == "0.0.0.0")


def test_port_is_in_the_address_that_is_announced(tmp_path: Path) -> None:
    """The operator reads on standard output where the service is."""
    with Service(tmp_path / "mahasiswa.db") as service:
        assert re.search(rf"http://localhost:{service.port}/(\s|$)", service.stdout())
        assert len(service.stdout().splitlines()) == 1
        assert service.stderr() == ""


def test_base_url_is_the_address_that_is_announced(tmp_path: Path) -> None:
    """Behind a proxy the service announces the address people open."""
    with Service(tmp_path / "mahasiswa.db", {"BASE_URL": "https://kampus.example/ti/"}) as service:
        assert re.search(r"https://kampus\.example/ti/(\s|$)", service.stdout())


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (None, "mahasiswa.db"),
        ("sqlite:///data siswa.db", "data siswa.db"),
        ("sqlite:///arsip/2026.sqlite3", "arsip/2026.sqlite3"),
        ("sqlite:////{folder}/mutlak.db", "mutlak.db"),
        ("sqlite:///?mode=memory", "?mode=memory"),
    ],
)
def test_database_url_is_where_the_file_is_made(tmp_path: Path, url: str | None, path: str) -> None:
    """Three slashes are relative to the working directory, four are absolute; the rest is a path, to the letter."""
    (tmp_path / "arsip").mkdir()
    url = url and url.format(folder=str(tmp_path).strip("/"))
    with Service(tmp_path, {"DATABASE_URL": url}, cwd=tmp_path) as service, service.site() as site:
        assert (tmp_path / path).is_file()
        site.add("0001", "Siti", "Solo")
        service.restart()
        assert site.list().nims == ["0001"]


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Visit a service that a proxy serves below a path."""
    environment = {"BASE_URL": f"https://kampus.example{PREFIX}"}
    with Service(tmp_path_factory.mktemp("below") / "mahasiswa.db", environment) as service, service.site() as site:
        yield site


@pytest.mark.parametrize("nim", ["20/456839/TK/50663", "//a", "/", PREFIX, f"{PREFIX}/", "a/../b", "%2F", "add", ""])
def test_base_url_with_a_path_stands_before_everything(below: Site, nim: str) -> None:
    """Every link, action and redirect has the prefix, and a record goes its whole round through them."""
    add_page = open_from(below.list(), "Tambah Data", below)
    assert_prefixed(add_page)
    added = below.submit(add_page.record_form, nim=nim, nama="Siti", alamat="Solo")
    assert (added.status_code, added.headers["location"]) == (302, f"{PREFIX}/")

    page = below.page(added.headers["location"])
    assert_prefixed(page)
    row = page.row(nim)
    assert row.links[0].href == f"{PREFIX}/mahasiswa/edit/{quote(nim, safe='')}"
    assert row.forms[0].action == f"{PREFIX}/mahasiswa/delete/{quote(nim, safe='')}"

    edit_page = below.page(row.links[0].target)
    assert_prefixed(edit_page)
    edited = below.submit(edit_page.record_form, nama="Budi")
    assert (edited.status_code, edited.headers["location"]) == (302, f"{PREFIX}/")
    assert below.list().row(nim).cells[1:4] == (nim, "Budi", "Solo")

    deleted = below.submit(row.forms[0])
    assert (deleted.status_code, deleted.headers["location"]) == (302, f"{PREFIX}/")
    assert below.list().rows == []


def test_base_url_with_a_path_is_in_error_pages_too(below: Site) -> None:
    """A page that says what is wrong leads back to the list below the prefix, a duplicate to its record."""
    below.add("20/1", "Siti", "Solo")
    duplicate = below.add("20/1", "Budi", "Bantul")
    assert duplicate.status_code == 409
    page = Page(duplicate.text, below.origin)
    assert_prefixed(page)
    assert f"{PREFIX}/mahasiswa/edit/20%2F1" in [link.href for link in page.links]
    missing = below.get(below.path("/mahasiswa/edit/", "nobody"))
    assert missing.status_code == 404
    assert_prefixed(Page(missing.text, below.origin))
    below.delete("20/1")


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/mahasiswa/add",
        "/mahasiswa/edit/1",
        PREFIX + "x/",
        PREFIX + "x/mahasiswa/add",
        "/x" + PREFIX + "/",
        PREFIX.upper() + "/",
        "/" + PREFIX[1:].replace("/", "%2F") + "/",
        PREFIX.replace("ti", "%74i") + "/",
    ],
)
def test_base_url_with_a_path_is_nothing_without_it(below: Site, target: str) -> None:
    """A request without the prefix, to the byte, is a 404 page that leads to the list."""
    answer = below.get(target)
    assert answer.status_code == 404
    page = Page(answer.text, below.origin)
    assert "Halaman tidak ditemukan. Periksa kembali tautannya." in page.tree.body.text()  # type: ignore[union-attr]
    assert f"{PREFIX}/" in [link.href for link in page.links]


def test_base_url_without_the_prefix_changes_nothing(below: Site) -> None:
    """A POST to the same path without the prefix stores nothing."""
    root = Site(below.origin)
    with closing(root.client):
        assert root.add("0001", "Siti", "Solo").status_code == 404
    assert below.list().rows == []


def test_cdn_url_is_bootstrap_with_its_hash_by_default(service: Service) -> None:
    """Where nothing is set the page loads Bootstrap 5 and lets the browser check it."""
    with service.site() as site:
        link = sheet(site)
    assert re.fullmatch(r"https://cdn\.jsdelivr\.net/npm/bootstrap@5\.[^/]+/dist/css/bootstrap\.min\.css", link["href"])
    assert re.fullmatch(r"sha384-[A-Za-z0-9+/]{64}", link["integrity"])
    assert link["crossorigin"] == "anonymous"


@pytest.mark.parametrize("integrity", [None, "", "sha256-" + "A" * 43 + "=", "sha512-" + "b+/1" * 21 + "Zg=="])
def test_cdn_url_alone_has_no_hash(tmp_path: Path, integrity: str | None) -> None:
    """CDN_URL without CDN_INTEGRITY writes no integrity: Bootstrap's would block another sheet. With it, it is there."""
    address = "https://cdn.example:8443/gaya/lembar~1.css"
    with (
        Service(tmp_path / "mahasiswa.db", {"CDN_URL": address, "CDN_INTEGRITY": integrity}) as service,
        service.site() as site,
    ):
        link = sheet(site)
        policy = policy_of(site)
    assert link["href"] == address
    assert link.get("integrity") == (integrity or None)
    assert ("crossorigin" in link) == bool(integrity)
    assert "https://cdn.example:8443" in policy["style-src"]
    assert not any("jsdelivr" in source for sources in policy.values() for source in sources)


def test_cdn_integrity_alone_is_the_hash_of_the_default_sheet(tmp_path: Path) -> None:
    """An operator may name a hash of his own for the default address."""
    integrity = "sha256-" + "A" * 43 + "="
    with Service(tmp_path / "mahasiswa.db", {"CDN_INTEGRITY": integrity}) as service, service.site() as site:
        link = sheet(site)
        policy = policy_of(site)
    assert link["integrity"] == integrity
    assert "jsdelivr" in link["href"]
    assert "https://cdn.jsdelivr.net" in policy["style-src"]


@pytest.mark.parametrize("workers", [None, "1", "2"])
def test_workers_is_the_number_of_processes_that_answer(tmp_path: Path, workers: str | None) -> None:
    """So many processes are started, and each shows at once what another one stored."""
    with Service(tmp_path / "mahasiswa.db", {"WORKERS": workers}) as service:
        assert len(children(service.pid)) == int(workers or "1")
        sites = [service.site() for _ in range(8)]  # a connection each, spread over the workers
        for number, site in enumerate(sites):
            assert site.add(f"{number}", "Siti", "Solo").status_code == 302
            for reader in sites:
                assert reader.list().nims == [str(nim) for nim in range(number + 1)]
        for site in sites:
            site.client.close()


@pytest.mark.parametrize("value", [None, "0", "off", "no", "False"])
def test_same_origin_only_is_off_by_default(tmp_path: Path, value: str | None) -> None:
    """Every route is open to a form of any site, as section 5 of the specification has it."""
    with Service(tmp_path / "mahasiswa.db", {"SAME_ORIGIN_ONLY": value}) as service, service.site() as site:
        assert post_from_another_site(site) == 302
        assert site.list().nims == ["0001"]


@pytest.mark.parametrize("value", ["1", "True"])
def test_same_origin_only_refuses_what_comes_from_another_site(tmp_path: Path, value: str) -> None:
    """On, a POST that the browser says comes from another site is refused; one from our own pages is not."""
    with Service(tmp_path / "mahasiswa.db", {"SAME_ORIGIN_ONLY": value}) as service, service.site() as site:
        assert site.add("0002", "Budi", "Bantul").status_code == 302
        assert post_from_another_site(site) == 403
        assert site.list().nims == ["0002"]


def run_to_the_end(environment: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Start the service with its working directory in `folder`, and return how it ended."""
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [sys.executable, "-m", "mahasiswa"],
        cwd=folder,
        env={**inherited, "PYTHONUTF8": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=START_SECONDS,
        check=False,
    )


def has_ipv6() -> bool:
    """Whether the loopback device has its IPv6 address."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def answers(address: str, port: int) -> bool:
    """Whether the list page is answered at this address."""
    try:
        with socket.create_connection((address, port), 5) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def open_from(page: Page, text: str, site: Site) -> Page:
    """Follow the one link of this text."""
    (link,) = [link for link in page.links if link.text == text]
    return site.page(link.target)


def assert_prefixed(page: Page) -> None:
    """Every link and every action of the page has the prefix, and there is one at least."""
    targets = [link.href for link in page.links] + [form.action for form in page.forms]
    assert targets
    for target in targets:
        assert target.startswith(f"{PREFIX}/")
        assert not target.startswith(PREFIX * 2)


def sheet(site: Site) -> dict[str, str]:
    """Return the attributes of the list page's one link to a style sheet."""
    (link,) = site.list().tree.css("link[rel~=stylesheet]")
    return {name: value or "" for name, value in link.attributes.items()}


def policy_of(site: Site) -> dict[str, list[str]]:
    """Return the list page's content security policy: directive to sources."""
    header = site.get(site.path("/")).headers["content-security-policy"]
    return {name: sources for name, *sources in (part.split() for part in header.split(";"))}


def children(pid: int) -> list[int]:
    """Return the processes whose parent this is."""
    shown = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    processes = [line.split() for line in shown.splitlines()]
    return [int(child) for child, parent, state in processes if int(parent) == pid and not state.startswith("Z")]


def post_from_another_site(site: Site) -> int:
    """Send a record as the form of a page of another site; return the status."""
    return site.send(
        "POST",
        site.path("/mahasiswa/add"),
        b"nim=0001&nama=Siti&alamat=Solo",
        content_type="application/x-www-form-urlencoded",
        origin="https://lain.example",
        sec_fetch_site="cross-site",
        sec_fetch_mode="navigate",
    ).status_code
