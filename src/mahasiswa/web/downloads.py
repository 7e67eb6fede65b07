"""Downloads: the records as a spreadsheet or as CSV, and an empty table for the import."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from io import BytesIO
from typing import BinaryIO

from starlette.responses import Response

from mahasiswa import sheets
from mahasiswa.record import Mahasiswa
from mahasiswa.store import Store
from mahasiswa.store.threads import in_thread
from mahasiswa.web.list_view import query_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import FileStream, unsent_file
from mahasiswa.work import EXPORT

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


async def template(_request: Request, _store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/impor/templat.xlsx: an empty table that passes its own import."""
    return Response(_template(), headers=_headers(pages, "templat-mahasiswa.xlsx"), media_type=XLSX)


async def export_xlsx(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.xlsx: all records, or those of a search, with every cell as text."""
    return await _export(request, store, pages, "mahasiswa.xlsx", sheets.write_xlsx)


async def export_csv(request: Request, store: Store, pages: Pages) -> Response:
    """GET /mahasiswa/ekspor.csv: the same as CSV that an Indonesian Excel opens."""
    return await _export(request, store, pages, "mahasiswa.csv", sheets.write_csv)


async def _export(
    request: Request, store: Store, pages: Pages, name: str, write: Callable[[Iterator[Mahasiswa], BinaryIO], int]
) -> Response:
    """Answer with a file. It is complete before its first byte is sent, so no transaction waits for a slow client."""
    headers = _headers(pages, name)
    media_type = "text/csv" if name.endswith(".csv") else XLSX
    records_found = store.reader(EXPORT).chunks(query_of(request.query_params))
    try:
        with unsent_file() as file:
            await in_thread(records_found, lambda records: write(records, file))
            answer = FileStream(request, file, headers, media_type)
    except sheets.NotCarried as error:
        return pages.error("not carried", text=str(error))
    answer.headers["content-length"] = str(answer.size)
    return answer


@cache
def _template() -> bytes:
    file = BytesIO()
    sheets.write_template(file)
    return file.getvalue()


def _headers(pages: Pages, name: str) -> Mapping[str, str]:
    return {**pages.headers, **pages.not_stored, "content-disposition": f'attachment; filename="{name}"'}
