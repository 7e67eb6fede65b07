"""Runs a program of PostgreSQL, with its options, on the database of DATABASE_URL: pg_program.py pg_dump -Fc.

No secret of the address stands on its command line, because every user of the computer can see that.
"""

import os
import sys
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

SERVICE = "mahasiswa"


def main() -> None:
    """Replace this process by the program of the arguments."""
    url = os.environ.get("DATABASE_URL", "")
    if not url.startswith(("postgresql:", "postgres:")):
        sys.exit("/etc/mahasiswa.env, the only settings of dumps, lacks DATABASE_URL=postgresql:…")
    address: dict[str, Any] = conninfo_to_dict(url)
    if password := address.pop("password", None):
        os.environ["PGPASSWORD"] = password
    # Those that libpq hides in a form, such as sslpassword, have no variable.
    hidden = {
        option.keyword.decode() for option in Conninfo.get_defaults() if option.dispchar == b"*"
    }
    if secrets := hidden & address.keys():
        if "service" in address:
            sys.exit(f"write {', '.join(secrets)} into the service file, not into DATABASE_URL")
        lines = [f"[{SERVICE}]", *(f"{name}={address.pop(name)}" for name in secrets), ""]
        os.environ["PGSERVICEFILE"] = file_in_memory("\n".join(lines))
        address["service"] = SERVICE
    name, *options = sys.argv[1:]
    os.execvp(name, [name, f"--dbname={make_conninfo(**address)}", *options])  # noqa: S606 - no shell


def file_in_memory(text: str) -> str:
    """Return the name of a file that only this process can open, also after the program has replaced it."""
    descriptor = os.memfd_create(SERVICE, 0)
    os.write(descriptor, text.encode())
    return f"/proc/self/fd/{descriptor}"


if __name__ == "__main__":
    main()
