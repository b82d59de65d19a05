"""The one writer: reads the stream from its head, applies commands, and alone guards SQLite and the wiki."""
