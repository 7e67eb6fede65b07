"""Student records, kept in a list that people edit in a browser."""
