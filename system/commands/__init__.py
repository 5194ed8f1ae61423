"""The commands of ``python -m system`` that look at recorded executions."""
