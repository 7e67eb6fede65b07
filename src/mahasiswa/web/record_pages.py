"""Renders the pages of one record: the forms of specification 4.2 and 4.3, of another NIM, and the edit conflict."""

from collections.abc import Mapping
from functools import cached_property
from urllib.parse import quote

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, digest
from mahasiswa.store.errors import EditConflict
from mahasiswa.store.history import Batch, Entry
from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.list_rows import row_fragment
from mahasiswa.web.page_renderer import PageRenderer
from mahasiswa.wording import PROBLEMS, ProblemName

Values = Mapping[str, str | None]


class RecordPages(PageRenderer):
    """The pages of one record."""

    @cached_property
    def empty_add_form(self) -> CachedPage:
        """The form of specification 4.2 before anything is typed. No record is in it, so it is rendered once."""
        return self.cached(self.add_form({}))

    def add_form(
        self,
        values: Values,
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
        stored: Mahasiswa | None = None,
        *,
        again: bool = False,
        latest: Entry | Batch | None = None,
    ) -> Response:
        """The form of specification 4.2, with the texts that were typed and, by field, the reason of a refusal.

        `stored` is the record that was saved before, or the one that has the typed nim. If `again` is true, Enter saves
        and leads to another empty form. `latest` is the latest change, because the record before may have a twin.
        """
        if wrong and stored == tuple(values.values()):  # a second click on the button repeats an addition
            return self.page("stored.html", 409, nim=stored.nim, again=again)
        action = self.path("/mahasiswa/add") + self.list_query
        twin = self.twin(latest, self.list_query)
        return self._form(wording.ADD_HEADING, action, values, wrong, problem, stored=stored, again=again, twin=twin)

    def edit_form(self, record: Mahasiswa) -> Response:
        """The form of specification 4.3. Its button carries the digest of the record that it shows."""
        return self.edit_again(record.nim, digest(record), record._asdict())

    def edit_again(
        self,
        nim: str,
        versi: str | None,
        values: Values,
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
    ) -> Response:
        """The edit form with the texts that were typed and, by field, the reason of a refusal."""
        action = self.edit_path(nim) + self.list_query
        return self._form(
            wording.EDIT_HEADING, action, {**values, "nim": nim}, wrong, problem, kind="edit", versi=versi
        )

    def changed(self, conflict: EditConflict) -> Response:
        """The edit form if someone else changed the same field, or deleted the record: what was typed, and the choice."""
        current, edited = conflict.current, conflict.edited
        if current is None:
            action = self.path("/mahasiswa/add") + self.list_query
            return self._form(wording.EDIT_HEADING, action, edited._asdict(), problem="deleted", kind="deleted")
        action = self.edit_path(current.nim) + self.list_query
        return self._form(
            wording.EDIT_HEADING,
            action,
            edited._asdict(),
            problem="changed",
            kind="edit",
            versi=digest(current),
            conflict=conflict,
            focus="nama" if edited.nama != current.nama else "alamat",
        )

    def nim_form(
        self,
        record: Mahasiswa,
        values: Values,
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
        stored: Mahasiswa | None = None,
    ) -> Response:
        """The form that gives a record another nim. `stored` is the record that has the typed nim already."""
        action = self.nim_path(record.nim) + self.list_query
        values = {**record._asdict(), **values}
        return self._form(wording.NIM_HEADING, action, values, wrong, problem, kind="nim", stored=stored, record=record)

    def saved(self, nim: str) -> Response:
        """302 to the list, or to the row of the record on the page of the list from which it was opened."""
        return self.redirect_to(f"/{self.list_query}{row_fragment(nim)}") if self.list_query else self.redirect

    def add_another(self, nim: str) -> Response:
        """302 to an empty form that says that the record with this nim is saved."""
        query = f"{self.list_query}&" if self.list_query else "?"
        return self.redirect_to(f"/mahasiswa/add{query}lagi=1&nim={quote(nim, safe='')}")

    def _form(
        self,
        heading: str,
        action: str,
        values: Values,
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
        **context: object,
    ) -> Response:
        status, _, alert = PROBLEMS[problem] if problem else (200, "", "")
        if wrong:
            status = 409 if "duplicate" in wrong.values() else 400
        kind = context.setdefault("kind", "add")
        wrong_fields = [field for field in Mahasiswa._fields if field in (wrong or ())]
        if wrong_fields or "focus" not in context:
            context["focus"] = wrong_fields[0] if wrong_fields else "nim" if kind in ("add", "nim") else "nama"
        absent = dict.fromkeys(("versi", "conflict", "stored", "record", "again", "twin"))
        values = {field: values.get(field) for field in Mahasiswa._fields}
        context = absent | {"heading": heading, "action": action, "values": values, "alert": alert} | context
        return self.page("form.html", status, None, wrong=wrong or {}, **context)
