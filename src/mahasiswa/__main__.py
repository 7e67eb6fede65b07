"""Runs the command line as `python -m mahasiswa`."""

from mahasiswa.commands.cli import main

main()
