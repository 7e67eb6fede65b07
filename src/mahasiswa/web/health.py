"""The health check, for probes and monitors."""

from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.store import Store
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.work import RECORD


async def show(_request: Request, store: Store, pages: Pages) -> Response:
    """GET /sehat: 200 if the store answers a read of one record. Otherwise Unavailable is raised, which gives 503."""
    await store.reader(RECORD).get("")
    heading, text = wording.HEALTHY
    return pages.page("error.html", heading=heading, text=text)
