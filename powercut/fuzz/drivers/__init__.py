"""Drivers choose actions and crashes: Hypothesis, a seeded swarm, a replay."""
