"""The server: the main process, its workers with their HTTP protocol, and their helpers."""
