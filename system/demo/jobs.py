"""The demo's team and its jobs: everything that the operator will ever ask for, by fixed ids.

A job goes through the whole team. The lead hands it to the writer, who spawns a helper for
it; the helper completes with a result, the writer shows that to the checker, the checker
to the lead, and the lead tells USER. What each has to do travels in the messages, as plays
of the scripted provider.
"""

from __future__ import annotations

from typing import Final

from system.ports import Json, JsonObject

LEAD: Final = "lead"
TEAM: Final = (LEAD, "writer", "checker")
REQUEST_ID: Final = "demo.lead"
INSTRUCTIONS: Final = "You lead a small team. Tell USER of every job that is done."
TEAM_ID: Final = "demo.team"

_, _WRITER, _CHECKER = TEAM


def team() -> JsonObject:
    """Return the payload that makes the lead spawn its team."""
    return _play(
        ["spawn_agent", {"name": _WRITER, "instructions": "Have every job done by a helper."}],
        ["spawn_agent", {"name": _CHECKER, "instructions": "Look at what the writer shows you."}],
        say="the team is there",
    )


def job_id(number: int) -> str:
    """Return the message id of a job; jobs are numbered from 1."""
    return f"demo.job.{number}"


def job(number: int) -> JsonObject:
    """Return the payload of a job."""
    told = _play(["send_message", {"to": "USER", "payload": result(number)}])
    checked = _play(["send_message", {"to": LEAD, "payload": told}])
    done = _play(["send_message", {"to": _CHECKER, "payload": checked}])
    helped = _play(["complete", {"result": done}])
    helper = f"helper {number}"
    written = _play(
        ["spawn_agent", {"name": helper, "instructions": "Do what you are asked for, once."}],
        ["send_message", {"to": helper, "payload": helped}],
    )
    return _play(["send_message", {"to": _WRITER, "payload": written}], say=f"job {number}")


def result(number: int) -> JsonObject:
    """Return what USER is told when a job is done."""
    return {"job": number}


def job_of(payload: Json) -> int | None:
    """Return the number of the job whose result this is; None if it is no result."""
    match payload:
        case {"job": int(number)}:
            return number
        case _:
            return None


def _play(*calls: Json, say: str = "done") -> JsonObject:
    return {"do": list(calls), "say": say}
