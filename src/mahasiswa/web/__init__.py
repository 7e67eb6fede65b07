"""The pages, over HTTP."""
