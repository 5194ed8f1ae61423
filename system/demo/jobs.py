"""The demo's team and its jobs, all requested by fixed ids.

A job passes through the whole team. The lead sends it to the writer, which spawns a helper;
the helper completes with a result, the writer sends that to the checker, the checker to the
lead, and the lead to USER. The messages carry the scripts for the scripted provider.
"""

from __future__ import annotations

from typing import Final

from system.ports import Json, JsonObject

LEAD: Final = "lead"
TEAM: Final = (LEAD, "writer", "checker")
REQUEST_ID: Final = "demo.lead"
INSTRUCTIONS: Final = "You lead a small team. Report every finished job to USER."
TEAM_ID: Final = "demo.team"

_, _WRITER, _CHECKER = TEAM


def team() -> JsonObject:
    """Return the payload that makes the lead spawn its team."""
    return _script(
        ["spawn_agent", {"name": _WRITER, "instructions": "Have every job done by a helper."}],
        ["spawn_agent", {"name": _CHECKER, "instructions": "Look at what the writer shows you."}],
        say="the team is there",
    )


def job_id(number: int) -> str:
    """Return the message id of a job; jobs are numbered from 1."""
    return f"demo.job.{number}"


def job(number: int) -> JsonObject:
    """Return the payload of a job."""
    reported = _script(["send_message", {"to": "USER", "payload": result(number)}])
    checked = _script(["send_message", {"to": LEAD, "payload": reported}])
    done = _script(["send_message", {"to": _CHECKER, "payload": checked}])
    helped = _script(["complete", {"result": done}])
    helper = f"helper {number}"
    written = _script(
        ["spawn_agent", {"name": helper, "instructions": "Do what you are asked for, once."}],
        ["send_message", {"to": helper, "payload": helped}],
    )
    return _script(["send_message", {"to": _WRITER, "payload": written}], say=f"job {number}")


def result(number: int) -> JsonObject:
    """Return the payload that USER receives for a finished job."""
    return {"job": number}


def job_of(payload: Json) -> int | None:
    """Return the number of the job that this payload is the result of, or None."""
    match payload:
        case {"job": int(number)}:
            return number
        case _:
            return None


def _script(*calls: Json, say: str = "done") -> JsonObject:
    return {"do": list(calls), "say": say}
