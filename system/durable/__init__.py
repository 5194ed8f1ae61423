"""Durable execution: triggers, schedules, tasks and irreversible activities in ``state.db``."""
