"""luigi's ``LocalTarget`` may be empty after a power cut, and its task then counts as done.

The documentation promises of its local files that "all file system operations are atomic [...] your
data pipeline will not crash in a state containing partial data". The temporary file is renamed
without an fsync, and ``exists``, by which luigi decides what to run, says that the report is there.
"""

from luigi import LocalTarget


def write_report(ack):
    with LocalTarget("report").open("w") as file:
        file.write("sum: 3")
    ack("report")


def check(known):
    target = LocalTarget("report")
    assert target.exists() or not known.acknowledged, "the report is not there"
    if target.exists():
        with target.open("r") as file:
            text = file.read()
        assert text == "sum: 3", f"the report is {text!r}"


write_report.check = check
