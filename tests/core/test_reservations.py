"""Reservations: their names, what is free in them, what that means for a plan, and what they need to be usable."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.classification import Signals, classify
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.fallback import close
from airflow_accel_provider.core.jobs import Importance, JobState, Message
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.planning import plan, questions
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.quota import Quota
from airflow_accel_provider.core.record import PlannedPlace, Record, begin
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.reservations import Reservation, ReservationError, ReservationState, reservations_in
from airflow_accel_provider.core.reserving import Reserved, mismatch_of, named_problem
from airflow_accel_provider.core.search import may_move, next_place
from airflow_accel_provider.core.validation import check_beam, read_candidates, resolve
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks._wire_supply import reservation_from_json

CATALOG = load_catalog()
MOMENT = datetime(2026, 11, 29, 12, tzinfo=UTC)
FULL_NAME = "projects/acme-ml/zones/us-east5-b/reservations/tpu-night"
NAMED = Reservation(project="acme-ml", zone="us-east5-b", name="tpu-night")
HERE = Placement.parse("tpu-v6e-slice:2x2 on ct6e-standard-4t in us-east5-b")
L4 = Placement.parse("nvidia-l4 on g2-standard-8 in us-central1-a")
T4 = Placement.parse("nvidia-tesla-t4:2 on n1-standard-8 in us-central1-a")


def state(reservation: Reservation = NAMED, **said: Any) -> ReservationState:
    usual: dict[str, Any] = {
        "machine_type": "ct6e-standard-4t",
        "accelerator": "ct6e",
        "accelerators_each": 4,
        "count": 4,
        "in_use": 1,
        "status": "ready",
        "is_specific": True,
    }
    return ReservationState(reservation=reservation, **{**usual, **said})


@pytest.mark.parametrize(
    "text",
    [
        FULL_NAME,
        f"https://www.googleapis.com/compute/v1/{FULL_NAME}",
        f"//compute.googleapis.com/{FULL_NAME}",
        "projects/acme-ml/reservations/tpu-night",
    ],
)
def test_a_name_in_full(text: str) -> None:
    """A path and a URL name the same reservation; a path without a zone means the placement's."""
    assert Reservation.parse(text, placement=HERE) == NAMED
    assert str(NAMED) == FULL_NAME
    assert Reservation.parse(str(NAMED)) == NAMED


@pytest.mark.parametrize("text", ["tpu-night", "zones/us-east5-b/reservations/tpu-night"])
def test_a_name_in_the_jobs_own_project(text: str) -> None:
    """A name without a project means the job's own, and prints without one."""
    parsed = Reservation.parse(text, placement=HERE)
    assert parsed == replace(NAMED, project=None)
    assert str(parsed) == "zones/us-east5-b/reservations/tpu-night"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tpu_Night", "is not a reservation; write projects/PROJECT/zones/ZONE/reservations/NAME"),
        ("", "is not a reservation"),
        ("zones/us-east5/reservations/r", "'us-east5' is not a zone such as europe-west4-a"),
        ("tpu-night", "does not say the reservation's zone"),
    ],
)
def test_what_names_no_reservation(text: str, words: str) -> None:
    """A text that names no reservation, or does not say its zone, is an error that shows how it should read."""
    with pytest.raises(ReservationError, match=words):
        Reservation.parse(text)


def test_reservations_inside_other_texts() -> None:
    """Names in full are found wherever they stand in an option."""
    token = f"worker_accelerator=type:tpu-v6e-slice;topology:2x2;reservation:{FULL_NAME}"
    assert reservations_in(token) == (NAMED,)
    assert reservations_in("automatically_use_created_reservation") == ()


def test_what_compute_engine_says() -> None:
    """Count, use and machines are read; what is assured bounds what is counted; without a count nothing is known."""
    told = {
        "name": "tpu-night",
        "zone": "https://compute/zones/us-east5-b",
        "status": "READY",
        "specificReservationRequired": True,
        "specificReservation": {
            "count": "5",
            "assuredCount": "4",
            "inUseCount": "1",
            "instanceProperties": {
                "machineType": "ct6e-standard-4t",
                "guestAccelerators": [{"acceleratorType": "acceleratorTypes/ct6e", "acceleratorCount": 4}],
            },
        },
    }
    assert reservation_from_json(told, project="acme-ml") == state()
    for lacking in ({"name": "r", "zone": "z", "status": "READY"}, {**told, "status": None}):
        with pytest.raises(GoogleApiError, match="cannot be read: it has no"):
            reservation_from_json(lacking)


def test_a_reservation_of_chips() -> None:
    """A reservation for TPU machines of any size counts chips, of which a worker needs as many as its slice has."""
    carried = {"acceleratorType": "acceleratorTypes/ct6e", "acceleratorCount": 16}
    told = {
        "name": "tpu-night",
        "zone": "zones/us-east5-b",
        "status": "READY",
        "aggregateReservation": {
            "reservedResources": [{"accelerator": carried}],
            "inUseResources": [{"accelerator": {**carried, "acceleratorCount": 5}}],
        },
    }
    read = reservation_from_json(told, project="acme-ml")
    assert (read.machine_type, read.accelerator, read.free) == ("", "ct6e", 11)
    assert mismatch_of(read, HERE, CATALOG) is None
    rows = [planned(named(num_workers=n), read) for n in (2, 3)]
    assert [row.rejected is None for row in rows] == [True, False]


@pytest.mark.parametrize("status", ["creating", "invalid", ""])
def test_only_a_ready_reservation_has_room(status: str) -> None:
    """Nothing is free in a reservation that is not ready, and its status is told."""
    row = planned(named(), state(status=status))
    assert row.rejected is not None
    assert f"(it is {status or 'not ready'})" in row.rejected.explanation


def named(**said: Any) -> BeamRequest:
    return BeamRequest(use_public_ips=False, reservation=FULL_NAME, **said)


def planned(
    request: BeamRequest, *states: ReservationState | None, place: Placement = HERE, limit: float = 0
) -> PlannedPlace:
    """Return the plan of one place where the quota of everything is ``limit`` and these reservations were read."""
    metrics = ("TPUS_PER_TPU_FAMILY (tpu_family CT6E)", "NVIDIA_L4_GPUS", "NVIDIA_T4_GPUS")
    quotas = {metric: Quota(limit, 0) for metric in metrics}
    reserved = Reserved(
        named={(each.reservation if each else NAMED): each for each in states},
        listed=tuple(each for each in states if each),
    )
    candidates = [Candidate(placement=place)]
    return plan(request, candidates, catalog=CATALOG, readings={place.region: quotas}, reserved=reserved)[0]


def test_a_named_reservation_needs_no_quota() -> None:
    """Where a named reservation has room no quota for machines is asked, and what is free is told."""
    wanted = questions(named(), [Candidate(placement=HERE)], catalog=CATALOG)
    assert (wanted.regions, wanted.further, wanted.reservations) == ((), (), (NAMED,))
    row = planned(named(num_workers=3), state())
    assert row.rejected is None
    assert row.warnings == (f"3 of 4 free in {FULL_NAME}",)
    assert row.reservation == FULL_NAME


def test_addresses_are_drawn_as_ever() -> None:
    """Workers with public addresses draw the quota for them in a reservation too."""
    wanted = questions(replace(named(), use_public_ips=None), [Candidate(placement=HERE)], catalog=CATALOG)
    assert wanted.regions == ("us-east5",)


def test_a_full_reservation_puts_the_place_aside() -> None:
    """With less free than the job starts with, the place is put aside as out of stock, whatever the quota."""
    row = planned(named(num_workers=4), state(), limit=99)
    assert row.rejected is not None
    assert (row.rejected.kind, row.rejected.zone) == (FailureKind.STOCKOUT, "us-east5-b")
    assert row.rejected.explanation == f"needs at least 4 machines; 3 of 4 free in {FULL_NAME}"


def test_growth_beyond_a_reservation_warns() -> None:
    """A job that may grow beyond what is free is told so, and starts."""
    row = planned(named(max_num_workers=9), state())
    assert row.rejected is None
    assert row.warnings == (f"cannot grow to 9: 3 of 4 free in {FULL_NAME}",)


def test_an_unreadable_reservation_never_blocks() -> None:
    """What could not be read of a reservation is told and refuses nothing."""
    row = planned(named())
    assert row.rejected is None
    assert row.warnings == (f"what is free in {FULL_NAME} could not be read",)


def test_a_reservation_that_went_away() -> None:
    """A place whose reservation is gone, or holds other machines, is put aside with the reason."""
    gone, other = planned(named(), None), planned(named(), state(machine_type="ct6e-standard-8t", accelerators_each=8))
    assert gone.rejected is not None
    assert other.rejected is not None
    assert gone.rejected.explanation == f"there is no reservation {FULL_NAME}"
    assert "holds ct6e-standard-8t with 8 x ct6e, not ct6e-standard-4t with 4 x ct6e" in other.rejected.explanation


def test_a_reservation_says_more_of_a_zone_than_a_table() -> None:
    """A place that the catalogue does not know for the accelerator is kept when a reservation of it is there."""
    place = replace(HERE, region="europe-west12", zone="europe-west12-a")
    there = replace(NAMED, zone="europe-west12-a")
    request = BeamRequest(use_public_ips=False, reservation=str(there))
    row = plan(
        request,
        [Candidate(placement=place)],
        catalog=CATALOG,
        readings={},
        reserved=Reserved(named={there: state(there)}),
    )[0]
    assert row.rejected is None


def test_an_option_alone_names_a_reservation() -> None:
    """An option that is passed on as it is and names a reservation in full is read like the parameter."""
    request = BeamRequest(use_public_ips=False, service_options=(f"reservation={FULL_NAME}",))
    assert planned(request, state()).reservation == FULL_NAME


@pytest.mark.parametrize(
    ("place", "said", "fits"),
    [
        (HERE, {}, True),
        # What a machine carries by itself need not be repeated.
        (HERE, {"accelerator": None, "accelerators_each": 0}, True),
        (HERE, {"machine_type": "ct6e-standard-8t", "accelerators_each": 8}, False),
        (L4, {"machine_type": "g2-standard-8", "accelerator": None}, True),
        (L4, {"machine_type": "g2-standard-8", "accelerator": "nvidia-l4", "accelerators_each": 1}, True),
        (L4, {"machine_type": "g2-standard-4", "accelerator": "nvidia-l4", "accelerators_each": 1}, False),
        (T4, {"machine_type": "n1-standard-8", "accelerator": "nvidia-tesla-t4", "accelerators_each": 2}, True),
        (T4, {"machine_type": "n1-standard-8", "accelerator": "nvidia-tesla-t4", "accelerators_each": 1}, False),
        (T4, {"machine_type": "n1-standard-8", "accelerator": None, "accelerators_each": 0}, False),
        (L4, {"machine_type": "", "accelerator": None}, True),
    ],
)
def test_machines_must_be_those_that_are_reserved(place: Placement, said: dict[str, Any], fits: bool) -> None:
    """Machine type, accelerator and count of the place must be the reservation's, as far as it tells them."""
    assert (mismatch_of(state(**said), place, CATALOG) is None) == fits


def any_of(**said: Any) -> ReservationState:
    zone = said.pop("zone", "us-central1-a")
    usual = {"machine_type": "g2-standard-8", "accelerator": "nvidia-l4", "accelerators_each": 1, "is_specific": False}
    return state(Reservation(project="acme-ml", zone=zone, name=said.pop("name", "l4")), **{**usual, **said})


ANY = BeamRequest(use_public_ips=False, reservation="any", num_workers=3)


def test_room_in_any_reservation_stands_in_for_quota() -> None:
    """Where reservations that any machine may use hold the floor, a short quota is told and refuses nothing."""
    row = planned(ANY, any_of(), place=L4)
    assert row.rejected is None
    assert row.warnings[0] == "3 machines free in reservations of us-central1-a"
    assert row.warnings[1].startswith("without them: needs at least 3 of NVIDIA_L4_GPUS; 0 of 0 left")
    assert row.reservation == "any"


@pytest.mark.parametrize(
    "read",
    [
        any_of(in_use=2),
        any_of(is_specific=True),
        any_of(machine_type="g2-standard-4"),
        any_of(zone="us-central1-b"),
        any_of(status="creating"),
    ],
)
def test_without_such_room_quota_decides(read: ReservationState) -> None:
    """A reservation that is too full, for named use only, of other machines or elsewhere leaves it to the quota."""
    short, fits = planned(ANY, read, place=L4), planned(ANY, read, place=L4, limit=9)
    assert short.rejected is not None
    assert (short.rejected.kind, short.reservation) == (FailureKind.QUOTA, None)
    assert fits.rejected is None
    assert "the rest comes on demand" in fits.warnings[0]


def test_reservations_of_one_zone_add_up() -> None:
    """A place that pins no zone may use the zone of its region with most room, in several reservations."""
    wide = replace(L4, zone=None)
    two = (any_of(in_use=2), any_of(name="more", in_use=2), any_of(zone="us-central1-b", in_use=2))
    assert planned(ANY, *two, place=wide).reservation == "any"
    assert planned(ANY, two[0], two[2], place=wide).reservation is None


def test_the_nearest_reservation_is_told() -> None:
    """A reservation that is not there is an error that names its zone, or the one most likely meant."""
    others = [replace(NAMED, zone="us-east5-a"), replace(NAMED, name="tpu-nights")]
    said = [
        named_problem(NAMED, None, HERE, CATALOG, others=near, where="reservation")
        for near in (others, others[1:], others[:0])
    ]
    hints = [problem.message.removeprefix(f"There is no reservation {NAMED}.") for problem in said if problem]
    assert hints == [" It is in us-east5-a; the placement must be, too.", " Did you mean tpu-nights in us-east5-b?", ""]


STOCKOUT = Failure(
    kind=FailureKind.STOCKOUT,
    scope=Scope.ZONE,
    zone="us-east5-b",
    region="us-east5",
    resource=Resource.ACCELERATOR,
    explanation="zone pool exhausted",
)


def searched(first: PlannedPlace, second: PlannedPlace, failure: Failure = STOCKOUT) -> Record:
    begun = begin(owner="f" * 32, max_tries=0, now=MOMENT, project="acme-ml", prefix="score")
    record = replace(begun, plan=(first, second)).intend(0, first.placement, MOMENT)
    return close(record, failure, MOMENT)


@pytest.mark.parametrize(
    ("first", "second", "goes_on"),
    [
        (None, None, False),
        ("any", None, False),
        (None, "any", True),
        (None, FULL_NAME, True),
        (FULL_NAME, None, True),
        (FULL_NAME, FULL_NAME, False),
    ],
)
def test_a_reservation_is_a_pool_of_its_own(first: str | None, second: str | None, goes_on: bool) -> None:
    """A zone out of machines on demand says nothing of those reserved in it, and the other way round."""
    places = [PlannedPlace(placement=HERE, reservation=each) for each in (first, second)]
    assert (next_place(searched(*places), Policy()) is not None) == goes_on


def test_other_shortages_reach_reserved_places_too() -> None:
    """Addresses are short for reserved machines as for all others."""
    short = replace(STOCKOUT, kind=FailureKind.QUOTA, scope=Scope.REGION, resource=Resource.ADDRESS)
    places = [PlannedPlace(placement=HERE, reservation=each) for each in (None, FULL_NAME)]
    assert next_place(searched(*places, failure=short), Policy()) is None


@pytest.mark.parametrize(("first", "second", "goes_on"), [(HERE, L4, True), (L4, HERE, True), (L4, T4, False)])
def test_the_whole_project_means_one_kind_of_accelerator(first: Placement, second: Placement, goes_on: bool) -> None:
    """What rules out all TPUs of a project leaves its GPUs, what caps all its GPUs leaves its TPUs."""
    failure = replace(STOCKOUT, kind=FailureKind.QUOTA, scope=Scope.PROJECT, zone=None, region=None)
    places = [PlannedPlace(placement=each) for each in (first, second)]
    assert (next_place(searched(*places, failure=failure), Policy()) is not None) == goes_on


def test_a_place_keeps_its_reservation_in_the_record() -> None:
    """A planned place comes back from JSON with its reservation, and one that was written without it has none."""
    place = PlannedPlace(placement=HERE, reservation=FULL_NAME)
    assert PlannedPlace.from_json(place.to_json()) == place
    assert PlannedPlace.from_json({"placement": str(HERE)}).reservation is None


PIPELINE: dict[str, Any] = {
    "py_file": "gs://acme-ml/score.py",
    "sdk_container_image": "us-docker.pkg.dev/acme/beam/tpu:2.77.0",
    "pipeline_options": {"temp_location": "gs://acme-ml/tmp"},
    "number_of_worker_harness_threads": 50,
}
ASKED = f"give_me_reservation={FULL_NAME}"
ELSEWHERE = f"reservation={FULL_NAME.replace('us-east5-b', 'us-east5-a')}"


@pytest.mark.parametrize(
    ("place", "said", "codes"),
    [
        ("us-east5-b", {"reservation": FULL_NAME, "service_options": [ASKED]}, ""),
        ("us-east5-b", {"reservation": "tpu-night", "service_options": ["give_me=tpu-night"]}, ""),
        ("us-east5-b", {"reservation": "any"}, ""),
        ("us-east5", {"reservation": "any"}, ""),
        ("us-east5-b", {"reservation": "{{ params.held }}"}, ""),
        ("us-east5-b", {"reservation": FULL_NAME}, "?reservation-unasked"),
        ("us-east5", {"reservation": FULL_NAME}, "reservation-zone ?reservation-unasked"),
        ("us-east5", {"reservation": "tpu-night"}, "reservation-zone ?reservation-unasked"),
        ("us-east5-a", {"reservation": FULL_NAME}, "reservation-zone ?reservation-unasked"),
        ("us-east1-d", {"reservation": FULL_NAME}, "reservation-region ?reservation-unasked"),
        ("us-east5-b", {"reservation": "Any"}, "reservation-form"),
        ("us-east5-b", {"reservation": "zones/us-east5/reservations/r"}, "reservation-form"),
        ("us-east5-b", {"reservation": "another", "service_options": [ASKED]}, "reservation-contradicted"),
        ("us-east5-b", {"service_options": [ASKED]}, ""),
        ("us-east5-b", {"service_options": [ELSEWHERE]}, "reservation-zone"),
        ("us-east5-b", {"experiments": [ELSEWHERE]}, "reservation-zone"),
        (
            "us-east5-b",
            {"service_options": [f"worker_accelerator=type:tpu-v6e-slice;topology:2x2;reservation:{FULL_NAME}"]},
            "?accelerator-token",
        ),
        (
            "us-east5-a",
            {"service_options": [f"worker_accelerator=type:tpu-v6e-slice;topology:2x2;reservation:{FULL_NAME}"]},
            "?accelerator-token reservation-zone",
        ),
        ("us-east5", {"service_options": ["give_me_reservation=tpu-night"]}, "?reservation-zone"),
    ],
)
def test_what_a_reservation_needs(place: str, said: dict[str, Any], codes: str) -> None:
    """A named reservation must be in the zone its candidate pins, wherever it is named, and be asked for."""
    request = BeamRequest(**{**PIPELINE, **said})
    candidates, _ = read_candidates(f"tpu-v6e-slice:2x2 in {place}")
    problems = check_beam(request, candidates, catalog=CATALOG, operator="tpu")
    found = [f"{'' if each.is_error else '?'}{each.code}" for each in problems if each.code != "zone-undocumented"]
    assert sorted(found) == sorted(codes.split())


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"experiments": ["enable_prime"]}, "reservation-prime"),
        ({"pipeline_options": {**PIPELINE["pipeline_options"], "flexrs_goal": "COST_OPTIMIZED"}}, "flexrs-reservation"),
    ],
)
def test_what_takes_no_reservations(said: dict[str, Any], code: str) -> None:
    """Neither Dataflow Prime nor FlexRS takes a reservation, the last resort on CPUs included."""
    candidates, _ = read_candidates("cpu on n2-standard-8 in us-central1")
    problems = check_beam(BeamRequest(**{**PIPELINE, **said, "reservation": "any"}), candidates, catalog=CATALOG)
    assert code in {problem.code for problem in problems if problem.is_error}


def test_a_fallback_says_that_it_draws_on_no_reservation() -> None:
    """A fallback elsewhere inherits the reservation, which is an error, unless it says that it has none."""
    request = BeamRequest(**{**PIPELINE, "reservation": FULL_NAME, "service_options": [ASKED]})
    first, elsewhere = "tpu-v6e-slice:2x2 in us-east5-b", "nvidia-l4 in us-central1-a"
    free = {"placement": elsewhere, "reservation": None, "service_options": []}
    errors = []
    for fallback in (elsewhere, free):
        candidates, _ = read_candidates(first, [fallback])
        problems = check_beam(request, candidates, catalog=CATALOG, operator="tpu")
        errors.append({(each.code, each.where) for each in problems if each.is_error})
    assert errors == [{("reservation-region", "reservation"), ("reservation-region", "service_options")}, set()]


def test_a_fallback_on_demand_is_planned_beside_a_reservation() -> None:
    """Where the reservation is full, the next candidate of the same zone on demand is tried."""
    candidates = [
        Candidate(placement=HERE, overrides={"reservation": FULL_NAME}),
        resolve(Candidate(placement=HERE), CATALOG),
    ]
    reserved = Reserved(named={NAMED: state(in_use=4)})
    rows = plan(BeamRequest(use_public_ips=False), candidates, catalog=CATALOG, readings={}, reserved=reserved)
    assert [row.rejected is None for row in rows] == [False, True]
    begun = begin(owner="f" * 32, max_tries=0, now=MOMENT, project="acme-ml", prefix="score")
    assert next_place(replace(begun, plan=rows), Policy()) == (1, HERE)


@pytest.mark.parametrize(
    ("text", "kind", "moves"),
    [
        ("Specified reservation tpu-night does not have available resources for the request.", "stockout", True),
        ("Cannot use reservation, it requires reservation to be in READY state", "stockout", True),
        ("No available resources in specified reservations.", "configuration", False),
        ("Specified reservations [tpu-night] do not exist.", "configuration", False),
    ],
)
def test_a_reservation_that_filled_up_meanwhile(text: str, kind: str, moves: bool) -> None:
    """A reservation that is full by the time the job starts is a stockout, after which the next place is tried."""
    pool = "Startup of the worker pool in zone us-east5-b failed to bring up any of the desired 1 workers."
    message = Message(text=f"{pool} CONDITION_NOT_MET: {text}", importance=Importance.ERROR, at=MOMENT)
    failure = classify(Signals(messages=(message,), state=JobState.FAILED, region="us-east5", workers_seen=False))
    assert failure is not None
    assert failure.kind == kind
    places = [PlannedPlace(placement=HERE, reservation=each) for each in (FULL_NAME, None)]
    record = searched(*places, failure=failure)
    assert may_move(record.attempts[-1], Policy()) == moves
    assert not moves or next_place(record, Policy()) == (1, HERE)
