"""What the program asks of the operating system: signals, slow folders, the parent process, the administrator."""
