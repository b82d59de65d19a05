"""How well `memory_query` finds what was said: a labelled set goes in by the hooks' path, its questions are asked with the tool."""
