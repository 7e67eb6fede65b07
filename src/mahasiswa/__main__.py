"""Runs the command line, in UTF-8 whatever the locale is."""

import os
import sys


def main() -> None:
    """Run the command of the arguments. If the locale has another encoding, start Python again in its UTF-8 mode."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"  # also for child processes
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606

    from mahasiswa.commands import cli  # noqa: PLC0415 - the first start does not need it

    cli.main()


if __name__ == "__main__":
    main()
