"""Finds the administrator's name for the history, and says how to type a command."""

import os
import pwd

# How to type a command on this machine. `--settings` and the container image set it.
COMMAND_VARIABLE = "MAHASISWA_COMMAND"


def process_user() -> str:
    """The name of the user whose rights this process has."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # in a container, a user may have no name
        return str(uid)


def typed(arguments: str) -> str:
    """A command as the administrator types it on this machine."""
    return f"{os.environ.get(COMMAND_VARIABLE, 'mahasiswa')} {arguments}"


def command_name() -> str:
    """The name of the person for the history, such as "command: ani"."""
    try:
        return f"command: {os.environ.get('SUDO_USER') or os.getlogin()}"
    except OSError:  # the process has no login, as in a timer
        return f"command: {process_user()}"
