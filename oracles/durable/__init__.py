"""The specification of durable execution, from ``docs/durable.md``.

=====================================================  =======================================
the rows of a database, read by name alone             ``rows``
which triggers, tasks and intents there must be        ``shadow_state``, ``shadow_durable``
the occurrences of schedules                           ``shadow_schedules``
effects in the outside world, and the ledger           ``shadow_effects``
=====================================================  =======================================
"""
