"""What runs on a developer's machine: the `memoryd` command, the hook shim, its spool, the installers."""
