"""Removing secrets before anything is kept: rules shared with the client, and the server's full pipeline."""
