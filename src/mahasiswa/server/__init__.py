"""The server: the listener, the workers, and their HTTP protocol."""
