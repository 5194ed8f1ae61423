"""The specification of the agent runtime, from ``docs/runtime.md`` and ``docs/file-formats.md``.

``shadow_runtime`` is the entry point: it reads the files of a root and applies every law.

============================================  ================================================
reading                                       ``log_reader``, ``log_records``,
                                              ``session_state``, ``root_snapshot``
one log: turns, messages, gates in order      ``session_state``
logs are intact, session records agree        ``session_laws``
agents form a tree; children; controls        ``tree_laws``
each message has a cause, is unchanged        ``message_laws``
each committed effect reaches its log         ``delivery_laws``
a turn's line matches the provider's record    ``shadow_turns``, ``turn_effects``
the calls of the operator                     ``shadow_operator``
``view()``, and liveness                      ``view_laws``
============================================  ================================================

``shadow_tree`` specifies an undisturbed runtime, ``shadow_sessions`` the session store.
"""
