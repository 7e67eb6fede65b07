"""The commands of `mahasiswa`."""
