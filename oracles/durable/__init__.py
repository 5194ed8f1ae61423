"""The specification of durable execution, from ``docs/durable.md``.

=====================================================  =======================================
the rows of a database, read by name alone             ``rows``
the expected triggers, tasks and activities            ``shadow_state``, ``shadow_durable``
the occurrences of schedules                           ``shadow_schedules``
effects in the outside world, and the ledger           ``shadow_effects``
=====================================================  =======================================
"""
