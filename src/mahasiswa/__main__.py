"""`python -m mahasiswa`."""

from mahasiswa.cli import main

main()
