"""All pages, by feature, for one set of settings."""

from mahasiswa.web.list_pages import ListPages
from mahasiswa.web.record_pages import RecordPages
from mahasiswa.web.upload_pages import UploadPages


class Pages(ListPages, RecordPages, UploadPages):
    """Renders each page of the application."""
