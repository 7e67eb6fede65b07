"""The store, the pages and the slots that all handlers share, and the request that they get."""

from dataclasses import dataclass
from pathlib import Path

from starlette.types import Receive, Scope

from mahasiswa.settings import Settings
from mahasiswa.store import Store
from mahasiswa.web.list_cache import ListCache
from mahasiswa.web.metrics import Requests
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import BareRequest
from mahasiswa.web.routes import Router, UploadPurpose
from mahasiswa.work import Slots


@dataclass
class Service:
    """The settings, the store, the folder of uploads, the pages, the slots of a worker, and the number of its requests."""

    settings: Settings
    store: Store
    uploads: Path
    cache: ListCache
    pages: Pages
    slots: Slots
    requests: Requests


class Request(BareRequest):
    """A request to a service."""

    def __init__(
        self, scope: Scope, receive: Receive, service: Service, prefix: bytes, router: Router
    ) -> None:
        super().__init__(scope, receive, service.slots, prefix, router)
        self.service = service

    @property
    def purpose(self) -> UploadPurpose:
        """The purpose of the stage in the path."""
        return self.route.purpose if self.route else "impor"
