"""The service behaves like a dict, for random sequences of additions, edits, deletions, restarts and crashes."""

import os
import signal
import socket

from harness import URL_ENCODED, Service, Site
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

MAX_RESTARTS = 2
"""Maximum restarts in one example, because each takes a good part of a second."""

# A few nims that are easily confused, so that the steps of an example often meet the same record.
NIMS = st.sampled_from(
    ["0001", "1", "001", "a", "A", "", " ", "20/1", "20%2F1", "20", "é", "e\u0301", "🎓", "add", "\r\n"]
)
TEXTS = st.sampled_from(["Siti", "Budi", "", " ", "\r", "\n", "<b>", "&amp;", "🎓", "a" * 3000]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)


class Records(RuleBasedStateMachine):
    """A service, and a dict of the records that it should have."""

    service: Service
    site: Site

    nims = Bundle("nims")

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, tuple[str, str]] = {}
        self.restarts = 0

    @initialize()
    def begin(self) -> None:
        """Empty the list at the start of an example."""
        for nim in self.site.list().nims:
            assert self.site.delete(nim).status_code == 302

    @rule(target=nims, nim=NIMS, nama=TEXTS, alamat=TEXTS)
    def add(self, nim: str, nama: str, alamat: str) -> str:
        """An existing nim is refused, and any other is stored."""
        answer = self.site.add(nim, nama, alamat)
        assert answer.status_code == (409 if nim in self.model else 302)
        self.model.setdefault(nim, (nama, alamat))
        return nim

    @rule(target=nims, nim=NIMS)
    def choose_unknown_nim(self, nim: str) -> str:
        """Let other steps use a nim that was not added."""
        return nim

    @rule(nim=nims, nama=TEXTS, alamat=TEXTS)
    def edit(self, nim: str, nama: str, alamat: str) -> None:
        """An existing record is changed; an edit of an unknown nim is no error."""
        assert self.site.edit(nim, nama, alamat).status_code == 302
        if nim in self.model:
            self.model[nim] = (nama, alamat)

    @rule(nim=nims, nama=TEXTS)
    def edit_through_the_page(self, nim: str, nama: str) -> None:
        """The form holds the stored texts; only the typed field changes."""
        target = self.site.path("/mahasiswa/edit/", nim)
        if nim not in self.model:
            assert self.site.get(target).status_code == 404
            return
        form = self.site.page(target).record_form
        assert (form.values["nama"], form.values["alamat"]) == self.model[nim]
        assert self.site.submit(form, nama=nama).status_code == 302
        self.model[nim] = (nama, self.model[nim][1])

    @rule(nim=nims)
    def delete(self, nim: str) -> None:
        """A record is removed; a deletion of an unknown nim is no error."""
        assert self.site.delete(nim).status_code == 302
        self.model.pop(nim, None)

    @rule(
        nim=nims, body=st.sampled_from([b"", b"nama=x", b"alamat=x", b"nama=%FF&alamat=x", b"nama=a&nama=b&alamat=x"])
    )
    def edit_with_a_refused_form(self, nim: str, body: bytes) -> None:
        """A refused form changes nothing."""
        target = self.site.path("/mahasiswa/edit/", nim)
        status = self.site.send("POST", target, body, content_type=URL_ENCODED).status_code
        assert status == 400 or (status == 302 and nim not in self.model)

    @rule(nim=st.sampled_from([".", "..", "a\0", "9" * 256]), nama=TEXTS)
    def add_a_refused_nim(self, nim: str, nama: str) -> None:
        """A refused nim is not stored."""
        assert self.site.add(nim, nama, "x").status_code == 400

    @precondition(lambda self: self.restarts < MAX_RESTARTS)
    @rule()
    def stop_and_start(self) -> None:
        """End the service with SIGTERM and start it again."""
        self.restarts += 1
        assert self.service.stop() == 0
        self.service.restart()

    @precondition(lambda self: self.restarts < MAX_RESTARTS)
    @rule(nim=NIMS)
    def crash_while_adding(self, nim: str) -> None:
        """Kill the service during an addition: the record is stored completely or not at all, and no other one changes."""
        self.restarts += 1
        body = f"nim={self.site.path('', nim)}&nama=Ani&alamat=Klaten".encode()
        head = f"POST /mahasiswa/add HTTP/1.1\r\nHost: x\r\nContent-Type: {URL_ENCODED}\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.service.port)) as connection:
            connection.sendall(head.encode() + body)
            os.killpg(self.service.pid, signal.SIGKILL)
            self.service.kill()
            answered = received(connection).startswith(b"HTTP/1.1 302 ")
        self.service.restart()
        stored = nim in self.site.list().nims
        assert stored or nim not in self.model
        assert stored or not answered
        if stored:
            self.model.setdefault(nim, ("Ani", "Klaten"))

    @invariant()
    def the_list_is_the_model(self) -> None:
        """The list shows exactly the records of the dict, in order."""
        expected = [(nim, *self.model[nim]) for nim in sorted(self.model)]
        assert self.site.list().rows == [(str(number), *record) for number, record in enumerate(expected, 1)]


def received(connection: socket.socket) -> bytes:
    """Return the bytes that came before the connection broke."""
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_the_service_behaves_like_a_dict(database: str) -> None:
    """Each example has up to 30 steps. All examples use the same service and database."""
    with Service(database) as service, service.site() as site:
        machine = type("Machine", (Records,), {"service": service, "site": site})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=8,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            ),
        )
