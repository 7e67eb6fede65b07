"""Runs a program of PostgreSQL, with its options, on the database of DATABASE_URL: pg_program.py pg_dump -Fc.

The password goes into its environment, because every user of the computer can see a command line.
"""

import os
import sys
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo


def main() -> None:
    """Replace this process by the program of the arguments."""
    address: dict[str, Any] = conninfo_to_dict(os.environ["DATABASE_URL"])
    if password := address.pop("password", None):
        os.environ["PGPASSWORD"] = password
    name, *options = sys.argv[1:]
    os.execvp(name, [name, f"--dbname={make_conninfo(**address)}", *options])  # noqa: S606 - no shell


if __name__ == "__main__":
    main()
