"""What a recovery may report after nothing but crashes: torn ends, and no damage."""

from __future__ import annotations

from oracles.violation import FalseAlarm
from system.recovery.recovery_report import RecoveryReport


def check_report(report: RecoveryReport) -> None:
    """Raise when ``report`` speaks of what no crash can do to a session."""
    damaged = [damage for damage in report.damaged if not damage.tail]
    if damaged or report.missing or report.problems or report.detached or report.vanished:
        raise FalseAlarm("recovery reports damage that no crash can do", report=report)
