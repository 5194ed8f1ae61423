"""Recording of executions, the write-ahead log behind it, and replay (``docs/recording.md``)."""
