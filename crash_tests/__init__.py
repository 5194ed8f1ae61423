"""The crash tests of ``system``: its targets, workloads, mutants, and simulated ports."""
