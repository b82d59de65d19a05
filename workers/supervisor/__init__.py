"""The parent of the whole process tree: starts, watches, restarts and ends it. It judges progress, not pids."""
