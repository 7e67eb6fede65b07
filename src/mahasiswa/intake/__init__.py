"""Uploads: reads files of strangers in a child process, and keeps their rows in a stage until a person saves them."""
