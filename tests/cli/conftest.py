"""Fixtures for tests of the command line."""

from cli.operators import filled, long_list, operator, unprivileged
