"""Reads records from spreadsheets, and writes records to spreadsheets. docs/architecture.md shows the way of an import."""
