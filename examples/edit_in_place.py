"""``fileinput`` with ``inplace`` loses the file at a kill: only its backup is there.

The documentation says that "the file is moved to a backup file and standard output is directed to
the input file". The backup is deleted at the end, so after a power cut both may be without content.
"""

import fileinput
import os
import sys

OLD, NEW = b"colour=red\n", b"colour=RED\n"


def edit(ack):
    with open("settings", "wb") as file:
        file.write(OLD)
    os.sync()
    ack("written")
    with fileinput.input("settings", inplace=True) as lines:
        for line in lines:
            sys.stdout.write(line.replace("red", "RED"))
    ack("edited")


def check(known):
    if known.acknowledged:
        with open("settings", "rb") as file:
            content = file.read()
        assert content in (OLD, NEW), f"the file is {content!r}"


edit.check = check
