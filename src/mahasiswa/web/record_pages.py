"""Renders the pages of one record: the forms of specification 4.2 and 4.3, and the edit conflict."""

from collections.abc import Mapping
from functools import cached_property

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, digest
from mahasiswa.store.errors import EditConflict
from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.page_renderer import PageRenderer
from mahasiswa.wording import PROBLEMS, ProblemName


class RecordPages(PageRenderer):
    """The pages of one record."""

    @cached_property
    def empty_add_form(self) -> CachedPage:
        """The form of specification 4.2 before anything is typed. No record is in it, so it is rendered once."""
        return self.cached(self.add_form())

    def add_form(
        self,
        values: Mapping[str, str | None] | None = None,
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
    ) -> Response:
        """The form of specification 4.2, with the texts that were typed and, by field, the reason of a refusal."""
        return self._form(
            wording.ADD_HEADING, self.path("/mahasiswa/add") + self.list_query, values or {}, wrong or {}, problem
        )

    def edit_form(self, record: Mahasiswa) -> Response:
        """The form of specification 4.3. Its button carries the digest of the record that it shows."""
        return self.edit_again(record.nim, digest(record), record._asdict())

    def edit_again(
        self,
        nim: str,
        versi: str | None,
        values: Mapping[str, str | None],
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
    ) -> Response:
        """The edit form with the texts that were typed and, by field, the reason of a refusal."""
        values = {**values, "nim": nim}
        action = self.edit_path(nim) + self.list_query
        return self._form(wording.EDIT_HEADING, action, values, wrong or {}, problem, existing=True, versi=versi)

    def changed(self, conflict: EditConflict) -> Response:
        """The edit form if someone else changed the same field: the stored texts, the typed texts, and the choice."""
        current = conflict.current
        return self._form(
            wording.EDIT_HEADING,
            self.edit_path(current.nim) + self.list_query,
            conflict.edited._asdict(),
            {},
            "changed",
            existing=True,
            versi=digest(current),
            conflict=conflict,
        )

    def already_stored(self, nim: str) -> Response:
        """The answer to an addition of a record that is already stored with the same texts, as by a second click."""
        return self.page("stored.html", 409, nim=nim)

    def _form(
        self,
        heading: str,
        action: str,
        values: Mapping[str, str | None],
        wrong: Mapping[str, str],
        problem: ProblemName | None,
        *,
        existing: bool = False,
        versi: str | None = None,
        conflict: EditConflict | None = None,
    ) -> Response:
        status, _, alert = PROBLEMS[problem] if problem else (200, "", "")
        if wrong:
            status = 409 if "duplicate" in wrong.values() else 400
        wrong_fields = [field for field in Mahasiswa._fields if field in wrong]
        return self.page(
            "form.html",
            status,
            heading=heading,
            action=action,
            values={field: values.get(field) for field in Mahasiswa._fields},
            wrong=wrong,
            alert=alert,
            existing=existing,
            versi=versi,
            conflict=conflict,
            focus=wrong_fields[0] if wrong_fields else "nama" if existing else "nim",
        )
