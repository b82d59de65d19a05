"""The gate: the only way in. It authenticates, bounds, redacts, appends commands and answers reads."""
