"""Kinds of jobs, one file each: what is read for it, what is computed, and what that changes.

A file registers one `JobKind` under its own name. `compute` may run on another machine, without the data directory.
"""
