"""Renders the pages of one record: the forms of specification 4.2 and 4.3, of another NIM, and the edit conflict."""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from mahasiswa.record import Mahasiswa, digest
from mahasiswa.store.errors import EditConflict
from mahasiswa.store.history import Batch, Entry
from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.list_rows import row_fragment
from mahasiswa.web.page_renderer import PageRenderer
from mahasiswa.wording import PROBLEMS, ProblemName

Values = Mapping[str, str | None]
"""The texts of a form by field; None for a field that was not sent."""


class Reply(NamedTuple):
    """The answer in a form: by field the reason of a refusal, a problem of the form, and the record that has the nim."""

    wrong: Mapping[str, str] = MappingProxyType({})
    problem: ProblemName | None = None
    stored: Mahasiswa | None = None


NO_REPLY = Reply()


class RecordPages(PageRenderer):
    """The pages of one record."""

    @cached_property
    def empty_add_form(self) -> CachedPage:
        """The form of specification 4.2 before anything is typed. No record is in it, so it is rendered once."""
        return self.cached(self.add_form({}))

    def add_form(
        self,
        values: Values,
        reply: Reply = NO_REPLY,
        *,
        again: bool = False,
        latest: Entry | Batch | None = None,
    ) -> Response:
        """The form of specification 4.2. If `again` is true, Enter saves and leads to another empty form.

        Then `reply` may have the record that was saved before, and `latest` the latest change, because it may have a twin.
        """
        if reply.wrong and reply.stored == tuple(values.values()):  # a second click on the button repeats an addition
            return self.page("stored.html", 409, nim=values["nim"], again=again)
        return self._form("add", values, reply, again=again, twin=self.twin(latest, self.list_query))

    def edit_form(self, record: Mahasiswa) -> Response:
        """The form of specification 4.3. Its button carries the digest of the record that it shows."""
        return self.edit_again(record.nim, digest(record), record._asdict())

    def edit_again(self, nim: str, versi: str | None, values: Values, reply: Reply = NO_REPLY) -> Response:
        """The edit form with the texts that were typed."""
        return self._form("edit", {**values, "nim": nim}, reply, versi=versi)

    def changed(self, conflict: EditConflict) -> Response:
        """The edit form with the typed texts and a choice, if someone else changed the same field or deleted the record."""
        typed = conflict.edited._asdict()
        if conflict.current is None:
            return self._form("deleted", typed, Reply(problem="deleted"))
        return self._form("edit", typed, Reply(problem="changed"), versi=digest(conflict.current), conflict=conflict)

    def nim_form(self, record: Mahasiswa, values: Values, reply: Reply = NO_REPLY) -> Response:
        """The form that gives a record another nim."""
        return self._form("nim", {**record._asdict(), **values}, reply, record=record)

    def saved(self, nim: str) -> Response:
        """302 to the list, or to the row of the record on the page of the list from which it was opened."""
        return self.redirect_to(f"/{self.list_query}{row_fragment(nim)}") if self.list_query else self.redirect

    def add_another(self, nim: str) -> Response:
        """302 to an empty form that says that the record with this nim is saved."""
        query = f"{self.list_query}&" if self.list_query else "?"
        return self.redirect_to(f"/mahasiswa/add{query}lagi=1&nim={quote(nim, safe='')}")

    def _form(self, kind: str, values: Values, reply: Reply, **context: object) -> Response:
        status, _, alert = PROBLEMS[reply.problem] if reply.problem else (200, "", "")
        if reply.wrong:
            status = 409 if "duplicate" in reply.wrong.values() else 400
        absent = dict.fromkeys(("versi", "conflict", "record", "again", "twin"))
        values = {field: values.get(field) for field in Mahasiswa._fields}
        context = absent | reply._asdict() | context
        return self.page("form.html", status, None, kind=kind, values=values, alert=alert, **context)
