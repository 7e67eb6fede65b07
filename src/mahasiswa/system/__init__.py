"""Uses the operating system: signals, folders, the parent process, the name of the administrator."""
