"""Reading the database of emelex, an older program, and sending what it holds to memoryd. See docs/import.md."""
