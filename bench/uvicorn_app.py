"""The service as an ASGI application for another server: `uvicorn bench.uvicorn_app:app`."""

import os

from mahasiswa.settings import Settings
from mahasiswa.store import migrate
from mahasiswa.web.app import create_app

settings = Settings.from_environment(os.environ)
migrate(settings.database_url)
app = create_app(settings)
