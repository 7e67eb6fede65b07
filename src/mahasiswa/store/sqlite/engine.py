"""The functions of `store.engines` for a database in an SQLite file."""

# ruff: noqa: F401 - `engines` calls them by their names in this module

from mahasiswa.store.sqlite.backup import backup, backup_files, backup_into
from mahasiswa.store.sqlite.commands import forget, merge
from mahasiswa.store.sqlite.doctor import backups_that_hold, examine, examine_backup
from mahasiswa.store.sqlite.restore import restore
from mahasiswa.store.sqlite.schema import migrate
from mahasiswa.store.sqlite.store import open_store
