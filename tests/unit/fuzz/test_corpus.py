"""The corpus: it keeps the runs that reached something first, and other campaigns begin there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from powercut.fuzz.action import Action, ActionKind
from powercut.fuzz.campaign.campaign import Batch, Plan, Score, run_batch
from powercut.fuzz.campaign.campaign import batches as batches_of
from powercut.fuzz.campaign.corpus import LONGEST_STEPS, Corpus, corpus_in, features_of
from powercut.fuzz.campaign.growth import grow
from powercut.fuzz.drivers.replay import Verdict, replay
from powercut.fuzz.reproducer import BadReproducer, read_reproducer
from powercut.fuzz.run_log import RecordedStep
from powercut.fuzz.target import DiskTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import POSIX
from tests.unit.fuzz.project import PROJECT

TAG = "saved-file"
TARGET = PROJECT.target(TAG)


@pytest.fixture(autouse=True)
def uncached() -> None:
    corpus_in.cache_clear()


def campaign(folder: Path | None, seed: int, examples: int = 12) -> Score:
    """Run a campaign, let its corpus grow, and let the next one read it again."""
    plan = Plan((TARGET,), POSIX, seed, steps=15, examples=examples, corpus=folder)
    total = Score(TARGET)
    for batch in batches_of(plan):
        total.add(run_batch(batch))
    if folder is not None:
        assert grow(plan, [total]) == len({*total.reached.values()})
    corpus_in.cache_clear()
    return total


def test_corpus_grows_by_runs_that_replay_and_have_reached_what_their_files_say(
    tmp_path: Path,
) -> None:
    campaign(tmp_path, seed=1)
    files = sorted(tmp_path.glob("*.json"))
    assert files
    for path in files:
        result = replay(read_reproducer(path), TARGET.make_target)
        assert result.verdict is Verdict.PASSES
        features = json.loads(path.read_text("ascii"))["features"]
        assert set(features) <= set(features_of(result.run))
    campaign(tmp_path, seed=2)
    grown = sorted(tmp_path.glob("*.json"))
    assert set(files) < set(grown)


def test_only_what_the_corpus_lacks_is_added(tmp_path: Path) -> None:
    campaign(tmp_path, seed=1)
    known = corpus_in(tmp_path).features[TAG]
    corpus_in.cache_clear()
    reached = campaign(tmp_path, seed=2).reached
    assert reached
    assert not set(reached) & set(known)


def test_corpus_grows_for_a_limited_time(tmp_path: Path) -> None:
    plan = Plan((TARGET,), POSIX, 1, steps=5, examples=3, corpus=tmp_path)
    (batch,) = batches_of(plan)
    score = run_batch(batch)
    assert score.reached
    assert grow(plan, [score], seconds=0) == 0
    assert not list(tmp_path.iterdir())


def test_long_runs_are_not_added(tmp_path: Path) -> None:
    plan = Plan((TARGET,), POSIX, 1, steps=LONGEST_STEPS + 1, examples=1, corpus=tmp_path)
    (batch,) = batches_of(plan)
    assert not run_batch(batch).reached


def test_half_of_the_runs_begin_with_a_prefix_of_a_run_of_the_corpus(tmp_path: Path) -> None:
    campaign(tmp_path, seed=1)
    corpus = corpus_in(tmp_path)
    plan = Plan((TARGET,), POSIX, 3, steps=15, corpus=tmp_path)
    prefixed = 0
    for number in range(20):
        seeded = plan.run(TARGET, number)
        prefixed += bool(seeded.prefix)
        assert list(seeded.prefix) in [list(run[: len(seeded.prefix)]) for run in corpus.runs[TAG]]
        log = seeded.run().log
        begun = [step.action for step in log.steps[: len(seeded.prefix)]]
        assert begun == [step.action for step in seeded.prefix]
        assert len(log.steps) == len(seeded.prefix) + 15
        # A run is repeated up to the step in which it failed.
        shorter = replace(seeded, at_most=len(log.steps) - 1).run().log
        assert shorter.steps == log.steps[:-1]
    assert 4 < prefixed < 16


def test_prefix_ends_before_a_step_that_is_not_possible() -> None:
    corpus_run = Plan((TARGET,), POSIX, 1, steps=5).run(TARGET, 0)
    good = corpus_run.run().log.steps
    gone = RecordedStep(replace(good[0].action, name="a kind that was removed"))
    run = replace(corpus_run, prefix=(good[0], gone, good[1]), at_most=3).run()
    assert [step.action.name for step in run.log.steps].count(gone.action.name) == 0
    assert run.log.steps[0].action == good[0].action
    assert len(run.log.steps) == 3


def test_campaigns_with_an_equal_corpus_are_equal(tmp_path: Path) -> None:
    campaign(tmp_path, seed=1)

    def images() -> int:
        plan = Plan((TARGET,), POSIX, 4, steps=15, examples=6, corpus=tmp_path)
        (batch,) = batches_of(plan)
        return run_batch(batch).tally.images.count

    assert images() == images()


def test_missing_directory_is_an_empty_corpus_and_another_file_is_refused(tmp_path: Path) -> None:
    assert corpus_in(tmp_path / "none") == Corpus({}, {})
    (tmp_path / "a.json").write_text("{}", encoding="ascii")
    with pytest.raises(BadReproducer):
        corpus_in(tmp_path)


def test_run_0_of_a_target_is_completed_after_the_deadline_and_no_other_is_begun() -> None:
    plan = Plan((TARGET,), POSIX, 1, steps=5, deadline=0)
    tally = run_batch(Batch(plan, TARGET, 0, 3)).tally
    assert (tally.runs, tally.steps) == (1, 5)
    assert run_batch(Batch(plan, TARGET, 1, 3)).tally.runs == 0


class _Talkative(DiskTarget):
    def recover(self, host: Process) -> None:
        del host

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("talk", 1, lambda _arguments: "one two three")]


def test_features_are_pairs_of_steps_with_two_words_of_their_outcomes() -> None:
    run = TargetRun(_Talkative)
    for _ in range(2):
        run.perform(Action("talk", {}), PlainChoices())
    assert list(features_of(run)) == ["talk one two, talk one two"]
