"""What signals mean beyond a single sentence: context, next steps, users' own output, damaged and huge texts."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.classification import RULES, SHORTAGES, Rule, Signals, classify, judge, next_step
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Importance, JobState, Message
from tests.core.drawn_records import MOMENT

POOL = "Startup of the worker pool in zone us-central1-a failed to bring up any of the desired 1 workers. "
STOCKOUT = f"{POOL}ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/acme/zones/us-central1-a' does not have enough "
QUOTA = "QUOTA_EXCEEDED: Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in region europe-west4."
STUCK = "Workflow failed. Causes: The job appears to be stuck because no worker activity has been seen in the last 1h."
FOUR_TIMES = "Workflow failed. Causes: S01:Score failed., The job failed because a work item has failed 4 times."
PYTHON = 'Traceback (most recent call last):\n  File "score.py", line 3, in parse\nRuntimeError: {}'
JAVA = (
    "java.lang.RuntimeException: {}\n\tat com.acme.Score.parse(Score.java:12)\n\tat java.lang.Thread.run(Thread.java:1)"
)
SERVICE_ROWS = [rule for rule in RULES if not rule.from_workers]
WORKER_ROWS = [rule for rule in RULES if rule.from_workers]

rules = st.sampled_from(SERVICE_ROWS)
texts = st.one_of(st.text(max_size=300), rules.map(lambda rule: rule.example))
wrappings = st.sampled_from(
    [
        PYTHON,
        JAVA,
        "Error message from worker: {}",
        "retrying after {}\n" + PYTHON.format("again"),
        "Job failed with message [{}].",
    ]
)


def said(*texts: str, importance: Importance = Importance.ERROR) -> tuple[Message, ...]:
    return tuple(Message(text=text, importance=importance, at=MOMENT) for text in texts)


def meaning(*texts: str, **signals: Any) -> Failure:
    """Return what a failed job's messages mean; signals are the defaults of a job in us-central1."""
    known = {"state": JobState.FAILED, "region": "us-central1"} | signals
    failure = classify(Signals(messages=said(*texts), **known))
    assert failure is not None
    return failure


def answer(signals: dict[str, Any], service: str = "dataflow") -> dict[str, Any]:
    return judge(Signals.from_json({"service": service, "signals": signals})).to_json()


@given(st.lists(texts, max_size=4), st.booleans(), st.sampled_from([None, *JobState]))
def test_any_text_has_an_answer(parts: list[str], seen: bool, state: JobState | None) -> None:
    """No text breaks the classification, and its answer always has the nine names and survives JSON."""
    verdict = judge(Signals(messages=said(*parts), state=state, workers_seen=seen)).to_json()

    assert set(json.loads(json.dumps(verdict))) == {
        *("kind", "scope", "next", "zone", "region", "metric", "hint_zones", "resource", "explanation"),
    }


@given(rules, wrappings)
def test_quoted_words_are_the_users(rule: Rule, wrapping: str) -> None:
    """Whatever words of the service user code prints in a traceback or a worker's message, the failure is user code."""
    failure = meaning(wrapping.replace("{}", rule.example), workers_seen=True)

    assert failure.kind is FailureKind.USER_CODE


@given(st.lists(texts, max_size=3), st.booleans())
def test_a_confirmed_accelerator_leaves_no_shortage(parts: list[str], failed: bool) -> None:
    """Once the accelerator was confirmed, no text means a shortage or a reason to go elsewhere."""
    state = JobState.FAILED if failed else JobState.RUNNING
    signals = Signals(messages=said(*parts), state=state, workers_seen=True, accelerator_confirmed=True)
    failure = classify(signals)

    assert failure is None or failure.kind not in SHORTAGES
    assert judge(signals).next in {"stop", "same_place"}


@given(st.lists(texts, max_size=3), st.lists(texts, min_size=1, max_size=3))
def test_chatter_changes_nothing(parts: list[str], chatter: list[str]) -> None:
    """Messages below a warning change nothing."""
    grave = said(*parts)
    basic = said(*chatter, importance=Importance.BASIC)

    assert classify(Signals(messages=grave, state=JobState.FAILED)) == classify(
        Signals(messages=(*basic, *grave, *basic), state=JobState.FAILED)
    )


@pytest.mark.parametrize("rule", WORKER_ROWS, ids=lambda rule: rule.code)
def test_a_workers_words_never_move_a_job(rule: Rule) -> None:
    """What workers print is understood in a traceback too, and never sends a job elsewhere."""
    failure = meaning(PYTHON.format(rule.example), FOUR_TIMES, workers_seen=True, accelerator_confirmed=True)

    assert (failure.kind, next_step(failure)) == (rule.kind, "stop")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_row_says_what_to_do(rule: Rule) -> None:
    """Each row advises, fills the blanks of its advice, and says so when its words have more than one cause."""
    failure = meaning(rule.example)

    assert failure.advice
    assert "{" not in failure.advice.replace("{region}", "")
    assert failure.explanation.startswith("ambiguous: ") == rule.ambiguous


@pytest.mark.parametrize(
    ("kind", "scope", "resource", "service", "step"),
    [
        ("stockout", "zone", "accelerator", "dataflow", "other_zone"),
        ("stockout", "zone", "launcher", "dataflow", "same_place"),
        ("stockout", "zone", "accelerator", "dataproc", "same_place"),
        ("stockout", "region", "accelerator", "dataproc", "other_region"),
        ("quota", "region", "accelerator", "dataflow", "other_region"),
        ("quota", "region", "cpu", "dataflow", "other_region"),
        ("quota", "project", "accelerator", "dataflow", "other_accelerator"),
        ("quota", "project", "cpu", "dataflow", "stop"),
        ("not_offered", "zone", "accelerator", "dataflow", "other_zone"),
        ("not_offered", "region", "accelerator", "dataflow", "other_region"),
        ("preempted", "zone", None, "dataflow", "same_place"),
        ("service", "none", None, "dataflow", "same_place"),
        *((kind, "job", None, "dataflow", "stop") for kind in ("configuration", "permission", "image", "user_code")),
        *((kind, "none", None, "dataflow", "stop") for kind in ("cancelled", "unknown", "accelerator_missing")),
    ],
)
def test_next_steps(kind: str, scope: str, resource: str | None, service: Any, step: str) -> None:
    """The next step follows from kind, reach, resource and service alone."""
    failure = Failure(
        kind=FailureKind(kind),
        scope=Scope(scope),
        resource=Resource(resource) if resource else None,
        explanation="x",
    )

    assert next_step(failure, service) == step


@pytest.mark.parametrize(
    ("status", "kind", "step"),
    [
        (400, "configuration", "stop"),
        (401, "permission", "stop"),
        (403, "permission", "stop"),
        (404, "configuration", "stop"),
        (408, "service", "same_place"),
        (409, "configuration", "stop"),
        (412, "configuration", "stop"),
        (429, "service", "same_place"),
        (500, "service", "same_place"),
        (503, "service", "same_place"),
    ],
)
def test_refused_calls(status: int, kind: str, step: str) -> None:
    """A call that the service refused is judged by its status when its words say nothing more."""
    verdict = answer({"http_status": status, "messages": [{"text": "…"}], "region": "us-east1"})

    assert (verdict["kind"], verdict["next"], verdict["region"]) == (kind, step, "us-east1")
    assert str(status) in verdict["explanation"]


def test_words_come_before_a_status() -> None:
    """A refusal that names a quota is a quota, whatever its status."""
    text = "Insufficient 'PREEMPTIBLE_NVIDIA_L4_GPUS' quota. Requested 2.0, available 0.0."
    verdict = answer({"http_status": 400, "messages": [{"text": text}]}, "dataproc")

    assert (verdict["kind"], verdict["metric"]) == ("quota", "PREEMPTIBLE_NVIDIA_L4_GPUS")
    assert (verdict["resource"], verdict["next"]) == ("accelerator", "other_region")


@pytest.mark.parametrize(
    ("signals", "kind", "step"),
    [
        ({"messages": [{"text": STUCK}], "state": "failed"}, "stockout", "other_zone"),
        ({"messages": [{"text": STUCK}], "state": "failed", "workers_seen": True}, "configuration", "stop"),
        ({"messages": [{"text": STUCK}], "state": "failed", "accelerator_confirmed": True}, "configuration", "stop"),
        ({"messages": [{"text": "Error syncing pod"}, {"text": STUCK}], "state": "failed"}, "image", "stop"),
        ({"state": "running", "start_timeout": True}, "stockout", "other_zone"),
        ({"state": "running", "start_timeout": True, "workers_seen": True}, None, "same_place"),
        ({"state": "running", "grace_passed": True, "workers_seen": True}, "accelerator_missing", "stop"),
        ({"state": "running", "grace_passed": True}, None, "same_place"),
        ({"state": "failed", "grace_passed": True, "workers_seen": True}, "accelerator_missing", "stop"),
        (
            {
                "state": "running",
                "grace_passed": True,
                "workers_seen": True,
                "messages": [{"text": "manifest unknown"}],
            },
            *("image", "stop"),
        ),
        (
            {"state": "running", "grace_passed": True, "workers_seen": True, "messages": [{"text": STOCKOUT}]},
            *("accelerator_missing", "stop"),
        ),
        ({"state": "done", "grace_passed": True, "workers_seen": True}, "accelerator_missing", "stop"),
        (
            {"state": "running", "grace_passed": True, "workers_seen": True, "accelerator_confirmed": True},
            *(None, "same_place"),
        ),
        ({"state": "cancelled"}, "cancelled", "stop"),
        ({"state": "cancelled", "cancelled_by": "user", "messages": [{"text": STOCKOUT}]}, "cancelled", "stop"),
        ({"state": "cancelling", "cancelled_by": "user"}, "cancelled", "stop"),
        ({"state": "cancelled", "cancelled_by": "operator", "messages": [{"text": QUOTA}]}, "quota", "other_region"),
        ({"state": "cancelled", "cancelled_by": "operator", "start_timeout": True}, "stockout", "other_zone"),
        (
            {"state": "cancelled", "cancelled_by": "operator", "grace_passed": True, "workers_seen": True},
            *("accelerator_missing", "stop"),
        ),
        ({"state": "cancelled", "cancelled_by": "operator"}, "cancelled", "stop"),
        ({"state": "running", "workers_seen": True, "messages": [{"text": STOCKOUT}]}, None, "same_place"),
        ({"state": "running", "messages": [{"importance": "warning", "text": STOCKOUT}]}, "stockout", "other_zone"),
        ({"state": "running", "messages": [{"text": "No space left on device"}]}, None, "same_place"),
        ({"state": "running", "messages": [{"text": "UNAVAILABLE"}], "start_timeout": True}, "stockout", "other_zone"),
        ({"state": "done", "messages": [{"text": STOCKOUT}]}, None, "stop"),
        ({"state": "failed", "messages": [{"text": STOCKOUT}, {"text": FOUR_TIMES}]}, "user_code", "stop"),
        ({}, None, "same_place"),
    ],
)
def test_context(signals: dict[str, Any], kind: str | None, step: str) -> None:
    """The same words mean different things before and after workers came, and by who ended the job."""
    verdict = answer(signals)

    assert (verdict["kind"], verdict["next"]) == (kind, step)


@pytest.mark.parametrize(
    ("signals", "kind", "step"),
    [
        ({"state": "failed", "messages": [{"text": STOCKOUT}], "runtime_version": "2.3"}, "stockout", "same_place"),
        ({"state": "failed", "messages": [{"text": STOCKOUT}], "runtime_version": "3.0"}, "stockout", "other_region"),
        ({"state": "pending", "start_timeout": True}, "stockout", "other_region"),
        ({"state": "running", "grace_passed": True}, "accelerator_missing", "stop"),
        ({"state": "failed", "accelerator_confirmed": True}, "user_code", "stop"),
        ({"state": "failed", "accelerator_confirmed": True, "messages": [{"text": STOCKOUT}]}, "user_code", "stop"),
        ({"state": "succeeded"}, None, "stop"),
    ],
)
def test_spark_context(signals: dict[str, Any], kind: str | None, step: str) -> None:
    """A Spark batch can't choose its zone: it may be tried again there, but from 3.0 on a queue speaks for a region."""
    verdict = answer(signals, "dataproc")

    assert (verdict["kind"], verdict["next"]) == (kind, step)


def test_reservations() -> None:
    """Words about a reservation are the zone's stock, unless the job asked for a reservation."""
    text = "Insufficient reserved capacity. Contact customer support to increase your reservation."

    assert meaning(text).kind is FailureKind.STOCKOUT
    assert meaning(text, reservation_requested=True).kind is FailureKind.CONFIGURATION


@pytest.mark.parametrize(
    "text",
    [
        JAVA.format(STOCKOUT),
        f"Workflow failed. Causes: {JAVA.format(STOCKOUT)}",
        f"could not score\nCaused by: {STOCKOUT}",
        f"ERROR:score:retrying after {STOCKOUT}",
        f"2026-11-29 12:00:00,123 score.py ERROR {STOCKOUT}",
        f"26/11/29 12:00:00 WARN Scorer: {STOCKOUT}",
    ],
)
def test_stack_traces_and_log_lines_are_the_users(text: str) -> None:
    """Words in a Java stack trace or in a line of a program's own log are not the service's."""
    assert meaning(text).kind in {FailureKind.USER_CODE, FailureKind.UNKNOWN}


def test_the_service_may_quote_a_traceback() -> None:
    """What the service says before it quotes user code still counts."""
    assert meaning(f"{STOCKOUT}resources.\n{PYTHON.format('x')}").kind is FailureKind.STOCKOUT


@pytest.mark.parametrize(
    ("text", "kind", "metric", "zone"),
    [
        ("QUOTA_EXCEEDED: Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 1.0 in reg", "quota", "NVIDIA_L4_GPUS", None),
        ("QUOTA_EXCEEDED: Instance 'x' creation failed: Quota 'NVIDIA_L4_", "quota", None, None),
        ("ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/acme/zones/us-central1", "stockout", None, None),
        (f"{POOL}ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DET", "stockout", None, "us-central1-a"),
        ("ZONE_RESOURCE_POOL_EXHAUSTED: ゾーン「us-central1-a」に十分なリソースがありません。", "stockout", None, None),
        ("QUOTA_EXCEEDED: Das Kontingent „NVIDIA_T4_GPUS“ ist erschöpft.", "quota", "NVIDIA_T4_GPUS", None),
        ("La cuota NVIDIA_L4_GPUS se superó en la región us-east4.", "quota", "NVIDIA_L4_GPUS", None),
        ("RESOURCE_NOT_FOUND: 'projects/acme/zones/us-east1-a/acceleratorTypes/nvi", "not_offered", None, "us-east1-a"),
        ("Etwas ging schief.", "unknown", None, None),
    ],
)
def test_damaged_and_foreign_texts(text: str, kind: str, metric: str | None, zone: str | None) -> None:
    """Cut-off and foreign sentences are known by their codes, never by half a name, and unknown ones are called so."""
    failure = meaning(text)

    assert (failure.kind, failure.metric, failure.zone) == (kind, metric, zone)


def test_a_quotas_id_is_its_metric() -> None:
    """Newer texts name a quota by its id; the failure names its metric."""
    failure = meaning("Quota limit 'NVIDIA-L4-GPUS-per-project-region' has been exceeded. Limit: 1 in region us-east4.")

    assert (failure.metric, failure.resource, failure.region) == ("NVIDIA_L4_GPUS", Resource.ACCELERATOR, "us-east4")


def test_several_causes() -> None:
    """Of several causes a quota comes before a stockout, and a wrong request before both."""
    both = f"Workflow failed. Causes: {STOCKOUT}resources, Causes: {QUOTA}"

    assert meaning(both).kind is FailureKind.QUOTA
    assert meaning(both, "Instances with guest accelerators do not support live migration").kind == "configuration"


def test_a_regions_quota_is_not_a_zones() -> None:
    """A quota is told of with its region once, whatever zone the workers were tried in."""
    here = QUOTA.replace("europe-west4", "us-central1")
    verdict = judge(Signals(messages=said(f"{POOL}{here}"), state=JobState.FAILED)).to_json()

    assert verdict["zone"] == "us-central1-a"
    assert verdict["explanation"].startswith("NVIDIA_L4_GPUS is used up in us-central1 (limit 1.0): ")


def test_the_nearest_zone() -> None:
    """Of several zones in one message, the failure names the one its own sentence is about."""
    first = "Startup of the worker pool in zone us-central1-b failed: timeout. "

    assert meaning(f"{first}{STOCKOUT}resources.").zone == "us-central1-a"


def test_line_ends_and_colours() -> None:
    """Windows line ends and terminal colours don't hide words."""
    text = STOCKOUT.replace("does not have", "does\r\nnot have").replace("EXHAUSTED", "\x1b[31mEXHAUSTED\x1b[0m")

    assert meaning(text).kind is FailureKind.STOCKOUT


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
@pytest.mark.parametrize(
    ("found", "instead"),
    [(" ", "\n"), (" ", "\r\n    "), (" ", "\xa0"), ("'", '"'), ("'", "\u2019")],
    ids=["wrapped", "indented", "no-break", "quoted", "curly"],
)
def test_other_blanks_and_quotes(rule: Rule, found: str, instead: str) -> None:
    """Words that a log has wrapped, or a page has set with its own blanks and quotes, are still the same words."""
    plain, changed = meaning(rule.example), meaning(rule.example.replace(found, instead))

    assert (changed.kind, changed.scope, changed.metric) == (plain.kind, plain.scope, plain.metric)


@pytest.mark.parametrize(
    "hints",
    [
        '"zonesAvailable": "us-central1-b,us-central1-f"',
        '"zonesAvailable": ["us-central1-b", "us-central1-f"]',
        "zonesAvailable: us-central1-b,us-central1-f",
        "Consider trying your request in the us-central1-b, us-central1-f zone(s), which currently has capacity",
    ],
)
def test_hints(hints: str) -> None:
    """Zones with stock are taken from JSON, YAML and prose, in the service's order."""
    failure = meaning(f"{STOCKOUT}resources. {hints}")

    assert (failure.zone, failure.hint_zones) == ("us-central1-a", ("us-central1-b", "us-central1-f"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x" * 2_500_000 + f" {STOCKOUT}resources " + "x" * 2_500_000, FailureKind.STOCKOUT),
        (PYTHON.format("a" * 5_000_000), FailureKind.USER_CODE),
        ("\n" * 5_000_000, FailureKind.UNKNOWN),
        ("us-central1-" * 400_000, FailureKind.UNKNOWN),
        ("QUOTA_EXCEEDED " * 333_000, FailureKind.QUOTA),
        ("a.b.c.Exception\n\tat " * 250_000, FailureKind.UNKNOWN),
        ("Failed to start the VM, launcher-1, used for launching " * 90_000, FailureKind.UNKNOWN),
    ],
    ids=["buried", "traceback", "blank", "zones", "codes", "frames", "launchers"],
)
def test_huge_messages_are_quick(text: str, kind: FailureKind) -> None:
    """A message of five million characters is judged in a fraction of a second, and words in its middle are found."""
    spent = []
    for _ in range(2):
        started = time.process_time()
        failure = meaning(text)
        spent.append(time.process_time() - started)
        assert failure.kind is kind
        assert len(failure.evidence) <= 2_002

    assert min(spent) < 0.5


def test_explanations_say_what_to_do() -> None:
    """The answer's explanation tells what happened, where, and what a person can change."""
    verdict = answer({"state": "failed", "messages": [{"text": STOCKOUT}]})

    assert verdict["explanation"].startswith("zone pool exhausted in us-central1-a: another zone")


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ([], ["a request is an object"]),
        ({"service": "dataflow"}, ["signals: an object is needed, not nothing"]),
        ({"service": "dataflw", "signals": {}}, ["'dataflw'", "'dataflow'"]),
        ({"signals": {"mesages": []}}, ["'mesages'", "'messages'"]),
        ({"messages": [], "signals": {}}, ["request: unknown name 'messages'"]),
        ({"signals": {"messages": "boom"}}, ["messages: a list"]),
        ({"signals": {"messages": ["boom"]}}, ["messages[0]"]),
        ({"signals": {"messages": [{"text": 1}]}}, ["messages[0].text"]),
        ({"signals": {"messages": [{"text": "x", "importance": "eror"}]}}, ["messages[0].importance", "'error'"]),
        ({"signals": {"state": "faild"}}, ["'failed'"]),
        ({"signals": {"state": 3}}, ["state: 3"]),
        ({"signals": {"workers_seen": "yes"}}, ["workers_seen: true or false"]),
        ({"signals": {"http_status": "429"}}, ["http_status"]),
        ({"signals": {"http_status": True}}, ["http_status"]),
        ({"signals": {"cancelled_by": "users"}}, ["'user'"]),
        ({"signals": {"runtime_version": 3.0}}, ['("3.0" in quotes)']),
        ({"signals": {"region": "us-central1-a"}}, ["no region"]),
        ({"signals": {"state": "faild", "workers_seen": 1}}, ["'failed'", "workers_seen"]),
    ],
)
def test_wrong_requests(request_: Any, words: list[str]) -> None:
    """A request that is wrong is refused with everything that is wrong and the nearest right word."""
    with pytest.raises(ValueError) as raised:  # noqa: PT011 — the words are checked below
        Signals.from_json(request_)

    assert all(word in str(raised.value) for word in words)


def test_googles_spellings() -> None:
    """States and importances are read in Google's spelling too."""
    text = {"importance": "JOB_MESSAGE_ERROR", "text": QUOTA}
    signals = Signals.from_json({"signals": {"state": "JOB_STATE_FAILED", "messages": [text]}})

    assert (signals.state, signals.messages[0].importance) == (JobState.FAILED, Importance.ERROR)


def test_failures_keep_limit_and_advice() -> None:
    """A failure's limit and advice survive the record's JSON."""
    failure = meaning(QUOTA)

    assert failure.limit == 1.0
    assert Failure.from_json(json.loads(json.dumps(failure.to_json()))) == failure
