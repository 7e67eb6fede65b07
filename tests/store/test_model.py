"""The whole service against a dict: whatever is added, edited and deleted in any order, and however it is ended."""

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

MOST_RESTARTS = 2
"""In one example: each takes a good part of a second."""

# Few nims, so that they meet again, and the ones that are easily mixed up.
NIMS = st.sampled_from(
    ["0001", "1", "001", "a", "A", "", " ", "20/1", "20%2F1", "20", "é", "e\u0301", "🎓", "add", "\r\n"]
)
TEXTS = st.sampled_from(["Siti", "Budi", "", " ", "\r", "\n", "<b>", "&amp;", "🎓", "a" * 3000]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)


class Records(RuleBasedStateMachine):
    """A service, and the records that it should have."""

    service: Service
    site: Site

    nims = Bundle("nims")

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, tuple[str, str]] = {}
        self.restarts = 0

    @initialize()
    def begin(self) -> None:
        """Every example begins with an empty list."""
        for nim in self.site.list().nims:
            assert self.site.delete(nim).status_code == 302

    @rule(target=nims, nim=NIMS, nama=TEXTS, alamat=TEXTS)
    def add(self, nim: str, nama: str, alamat: str) -> str:
        """A nim that is there is refused, any other stored."""
        answer = self.site.add(nim, nama, alamat)
        assert answer.status_code == (409 if nim in self.model else 302)
        self.model.setdefault(nim, (nama, alamat))
        return nim

    @rule(target=nims, nim=NIMS)
    def know(self, nim: str) -> str:
        """Others may ask for a nim that nobody has added."""
        return nim

    @rule(nim=nims, nama=TEXTS, alamat=TEXTS)
    def edit(self, nim: str, nama: str, alamat: str) -> None:
        """A record that is there is changed; it is no error where it is not."""
        assert self.site.edit(nim, nama, alamat).status_code == 302
        if nim in self.model:
            self.model[nim] = (nama, alamat)

    @rule(nim=nims, nama=TEXTS)
    def edit_by_hand(self, nim: str, nama: str) -> None:
        """Through the page, what is not typed anew stays."""
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
        """A record is removed; it is no error where it is not there."""
        assert self.site.delete(nim).status_code == 302
        self.model.pop(nim, None)

    @rule(
        nim=nims, body=st.sampled_from([b"", b"nama=x", b"alamat=x", b"nama=%FF&alamat=x", b"nama=a&nama=b&alamat=x"])
    )
    def edit_in_vain(self, nim: str, body: bytes) -> None:
        """A form that is refused changes nothing."""
        target = self.site.path("/mahasiswa/edit/", nim)
        status = self.site.send("POST", target, body, content_type=URL_ENCODED).status_code
        assert status == 400 or (status == 302 and nim not in self.model)

    @rule(nim=st.sampled_from([".", "..", "a\0", "9" * 256]), nama=TEXTS)
    def add_in_vain(self, nim: str, nama: str) -> None:
        """A nim that is refused is not stored."""
        assert self.site.add(nim, nama, "x").status_code == 400

    @precondition(lambda self: self.restarts < MOST_RESTARTS)
    @rule()
    def stop_and_start(self) -> None:
        """SIGTERM, the end, and a new beginning."""
        self.restarts += 1
        assert self.service.stop() == 0
        self.service.restart()

    @precondition(lambda self: self.restarts < MOST_RESTARTS)
    @rule(nim=NIMS)
    def crash_while_adding(self, nim: str) -> None:
        """SIGKILL while an addition is on its way: it is stored whole or not at all, all else as it was."""
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
        """The list has each record of the model once, in order, and no other."""
        expected = [(nim, *self.model[nim]) for nim in sorted(self.model)]
        assert self.site.list().rows == [(str(number), *record) for number, record in enumerate(expected, 1)]


def received(connection: socket.socket) -> bytes:
    """Return what has come before the connection broke."""
    try:
        return connection.recv(65536)
    except ConnectionResetError:
        return b""


def test_the_service_is_a_dict(database: str) -> None:
    """Examples of up to 30 steps; the database lives on from one to the next."""
    with Service(database) as service, service.site() as site:
        machine = type("Machine", (Records,), {"service": service, "site": site})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=20,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            ),
        )
