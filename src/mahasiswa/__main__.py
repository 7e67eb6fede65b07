"""Runs the command line as `python -m mahasiswa`."""

from mahasiswa.cli import main

main()
