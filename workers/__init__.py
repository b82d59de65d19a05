"""Background processes: the writer, the pools, beat and the supervisor."""
