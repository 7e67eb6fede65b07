"""The fixture for tests of the command line."""

from cli.operators import operator
