"""Causes of failures: findings that need the same disturbance belong together.

One missing barrier violates several properties, in several targets. Their reduced runs end
with a power cut that loses operations on the same files, by which they are grouped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from powercut.crash_text import losses, names_on
from powercut.fuzz.reproducer import Finding
from powercut.fuzz.run_log import Crash, RunLog

_PATH: Final = re.compile(r"/[^\s,:]*")
_TEMPORARY: Final = re.compile(r"\.tmp\b.*")
_VALUE: Final = re.compile(r"\b[0-9a-f]{6,}\b|\d+")


def by_cause(findings: Iterable[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Return the findings of each cause, those with the fewest steps first."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(cause(finding.run.log), []).append(finding)
    return {
        text: sorted(group, key=lambda finding: len(finding.run.log.steps))
        for text, group in groups.items()
    }


def cause(log: RunLog) -> str:
    """Return the disturbance that a failed run needs, without numbers.

    A power cut that loses anything is named by the files that it concerns. Any other
    disturbance breaks programs in many ways, so the property is named as well.
    """
    lost = list(dict.fromkeys(name for step in log.steps for name in _lost(step.crashes)))
    if lost:
        return f"a power cut loses operations on {', '.join(sorted(lost))}"
    disturbance = "no crash and no fault"
    for step in log.steps:
        if "plan" in step.action.arguments:
            disturbance = f"fault {step.action.arguments['plan']}"
        if step.crashes:
            disturbance = f"{step.crashes[-1].point.kind} during {step.crashes[-1].during}"
    return _VALUE.sub("*", f"{log.broken}: {log.detail}; {disturbance}")


def _lost(crashes: Iterable[Crash]) -> Iterator[str]:
    """Yield the names of the files of which power cuts lost or tore operations."""
    for crash in crashes:
        survivors = crash.point.survivors
        if crash.disk is None or not (survivors.lost or survivors.torn):
            continue
        micros = crash.disk.unsynced().micros
        for loss in losses(micros, survivors, names_on(crash.disk)):
            for path in _PATH.findall(loss.text):
                name = path.rstrip("/").rpartition("/")[2]
                yield _VALUE.sub("*", _TEMPORARY.sub("", name)) or "/"
