"""The specification of recording, write-ahead log and record store, written from two pages.

They are ``docs/recording.md`` and ``docs/file-formats.md``.

=====================================================  =======================================
bytes of a log, read by the format alone               ``wal_reader``
a record: hashes, event chain, structure               ``record_reader``
many executions in one pack                            ``pack_reader``
where an interrupted execution stopped                 ``crash_points``
one execution: the log records that a crash may leave  ``shadow_execution``
all executions of a root: settling, order of losses    ``shadow_recording``
the files of a root after a recovery                   ``root_files``
=====================================================  =======================================
"""
