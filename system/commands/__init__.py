"""The commands of ``python -m system`` on recorded executions and durable work."""
