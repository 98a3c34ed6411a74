"""What the tests of the gates show, as a table: one row per tool, one column per duty of a gate."""

from collections.abc import Mapping
from dataclasses import dataclass

COLUMNS = ("before the verdict", "Pass", "Fail", "Inconclusive", "another image")
# A cell that no test of this suite shows. docs/gitops.md says why.
COMPARES_NO_IMAGES = "compares no images"


@dataclass(frozen=True)
class Gate:
    """A tool, and for each column the tests that show it, or why no test does."""

    tool: str
    cells: tuple[tuple[str, ...] | str, ...]


GATES = (
    Gate(
        "Flux",
        (
            (
                "test_flux_holds_the_release_until_the_verdict_and_releases_it_on_pass",
                "test_flux_holds_a_release_that_no_operator_has_seen",
            ),
            (
                "test_flux_holds_the_release_until_the_verdict_and_releases_it_on_pass",
                "test_flux_releases_what_it_held_once_the_budget_is_met",
            ),
            ("test_flux_stops_a_release_on_fail_and_names_the_benchmark",),
            ("test_flux_stops_a_release_on_inconclusive",),
            COMPARES_NO_IMAGES,
        ),
    ),
    Gate(
        "Argo CD",
        (
            ("test_argo_cd_holds_the_next_wave_until_the_verdict_and_applies_it_on_pass",),
            (
                "test_argo_cd_holds_the_next_wave_until_the_verdict_and_applies_it_on_pass",
                "test_argo_cd_applies_the_next_wave_once_the_budget_is_met",
            ),
            (
                "test_argo_cd_stops_the_next_wave_on_fail_and_shows_the_reason",
                "test_another_sync_of_the_stopped_commit_applies_nothing_more",
            ),
            ("test_argo_cd_stops_the_next_wave_on_inconclusive",),
            COMPARES_NO_IMAGES,
        ),
    ),
    Gate(
        "Argo Rollouts",
        (
            (
                "test_rollouts_holds_the_release_until_the_verdict_and_promotes_it_on_pass",
                "test_rollouts_does_not_accept_a_verdict_of_an_older_generation",
            ),
            (
                "test_rollouts_holds_the_release_until_the_verdict_and_promotes_it_on_pass",
                "test_rollouts_promotes_the_release_once_the_budget_is_met",
            ),
            ("test_rollouts_aborts_the_release_on_fail",),
            ("test_rollouts_aborts_the_release_on_inconclusive",),
            ("test_rollouts_refuses_a_verdict_about_another_image",),
        ),
    ),
    Gate(
        "Flagger",
        (
            ("test_flagger_holds_the_release_until_the_verdict_and_promotes_it_on_pass",),
            (
                "test_flagger_holds_the_release_until_the_verdict_and_promotes_it_on_pass",
                "test_flagger_promotes_the_release_once_the_budget_is_met",
            ),
            (
                "test_flagger_holds_the_release_on_fail",
                "test_flagger_rolls_a_release_back_whose_verdict_becomes_fail",
            ),
            ("test_flagger_holds_the_release_on_inconclusive",),
            ("test_flagger_holds_another_image_than_the_measured_one",),
        ),
    ),
    Gate(
        "Helm with hooks",
        (
            ("test_a_hook_holds_the_release_until_the_verdict_and_helm_applies_it_on_pass",),
            ("test_a_hook_holds_the_release_until_the_verdict_and_helm_applies_it_on_pass",),
            (
                "test_a_hook_stops_a_release_on_fail_and_helm_prints_the_reason",
                "test_a_retry_of_a_stopped_release_measures_nothing_again",
            ),
            ("test_a_hook_stops_a_release_on_inconclusive",),
            ("test_a_hook_refuses_a_verdict_about_another_image",),
        ),
    ),
    Gate(
        "GitHub, GitLab, Tekton",
        (
            ("test_the_pipelines_wait_for_the_verdict",),
            ("test_the_pipelines_continue_on_pass",),
            ("test_the_pipelines_stop_on_fail",),
            ("test_the_pipelines_stop_on_inconclusive",),
            ("test_the_pipelines_refuse_a_verdict_about_another_image",),
        ),
    ),
    Gate(
        "Helm",
        (
            "returns after it",
            ("test_helm_returns_after_the_verdict_pass",),
            ("test_helm_fails_with_the_reason_and_rolls_back",),
            ("test_helm_fails_on_inconclusive",),
            COMPARES_NO_IMAGES,
        ),
    ),
)
TESTS = {test for gate in GATES for cell in gate.cells if not isinstance(cell, str) for test in cell}


def table(outcomes: Mapping[str, str]) -> list[str]:
    """The lines of the table, from the outcome of each test: ``passed`` or another word.

    There is no line if no test of a gate ran.
    A cell is ``shown`` only if all of its tests passed. Words in parentheses say why no test shows a cell.
    """
    if not TESTS & outcomes.keys():
        return []
    rows = [["tool", *COLUMNS]]
    rows += [[gate.tool, *(_cell(cell, outcomes) for cell in gate.cells)] for gate in GATES]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ([f"{text:{width}}" for text, width in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join(row).rstrip() for row in padded]


def _cell(cell: tuple[str, ...] | str, outcomes: Mapping[str, str]) -> str:
    if isinstance(cell, str):
        return f"({cell})"
    seen = [outcomes.get(test, "not run") for test in cell]
    return next((outcome for outcome in seen if outcome != "passed"), "shown")
