"""Fixtures of the tests of commands: an operator with and without a long list, and commands without a right."""

from operators import (
    database_with_a_long_list,
    operator_in_empty_folder,
    operator_with_a_long_list,
    unprivileged_command,
)
from spreadsheets import another_program

__all__ = [
    "another_program",
    "database_with_a_long_list",
    "operator_in_empty_folder",
    "operator_with_a_long_list",
    "unprivileged_command",
]
