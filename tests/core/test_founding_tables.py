"""Every row of the tables in Google's pages about accelerators on Dataflow, with its neighbours that must not pass.

A row has where it is from; what is asked for; and what is said of it: ``""`` for nothing, a code for an error, a code
after ``?`` for a warning.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_accel_provider.core.beam_options import Sdk, load_options
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.options import beam_flags, go_flags, java_flags
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import check_beam, read_candidates, resolve
from airflow_accel_provider.core.validation._extras import RULES
from airflow_accel_provider.core.validation._shapes import Operator
from airflow_accel_provider.core.validation._versions import MINIMUMS
from tests.core.strategies import placements
from tests.core.test_validation import PLACE, check, told

CATALOG = load_catalog()
DOCS = "https://cloud.google.com/dataflow/docs"
GPU = f"{DOCS}/gpu/use-gpus"
GPUS = f"{DOCS}/gpu/gpu-support"
L4 = f"{DOCS}/gpu/use-l4-gpus"
MPS = f"{DOCS}/gpu/use-nvidia-mps"
TPU = f"{DOCS}/tpu/use-tpus"
TPUS = f"{DOCS}/tpu/tpu-support"
TPU_TROUBLE = f"{DOCS}/tpu/troubleshoot-tpus"
TPU_ZONES = "https://cloud.google.com/tpu/docs/regions-zones"
HINTS = f"{DOCS}/guides/right-fitting"
RESERVATIONS = f"{DOCS}/guides/reservations"
FLEXRS = f"{DOCS}/guides/flexrs"
MACHINES = "https://cloud.google.com/compute/docs/accelerator-optimized-machines"
HOSTS = "https://cloud.google.com/compute/docs/gpus"
K80 = "https://cloud.google.com/compute/docs/eol/k80-eol"

# Places of the GPU operator.
GPU_PLACES: list[tuple[str, str, str]] = [
    # The types, and the names that other pages write
    (GPUS, "nvidia-l4 in us-central1", ""),
    (GPUS, "nvidia-tesla-t4 in us-central1", ""),
    (GPUS, "nvidia-tesla-p4 in us-central1", ""),
    (GPUS, "nvidia-tesla-v100 in us-central1", ""),
    (GPUS, "nvidia-tesla-p100 in us-central1", ""),
    (GPUS, "nvidia-tesla-a100 in us-central1", ""),
    (GPUS, "nvidia-a100-80gb in us-central1", ""),
    (GPUS, "nvidia-h100-80gb:8 in us-central1", ""),
    (GPUS, "nvidia-h100-mega-80gb:8 in us-central1", ""),
    (GPUS, "nvidia-a100-40gb in us-central1", "unknown-accelerator"),
    (GPUS, "nvidia-tesla-a100-80gb in us-central1", "unknown-accelerator"),
    (HINTS, "nvidia-tesla-l4 in us-central1", "unknown-accelerator"),
    (K80, "nvidia-tesla-k80 in us-central1", "unknown-accelerator"),
    (GPUS, "nvidia-h200-141gb:8 on a3-ultragpu-8g in us-central1", "?not-listed ?not-on-demand"),
    (GPUS, "nvidia-h200-141gb:4 on a3-ultragpu-8g in us-central1", "?not-listed count-invalid"),
    (GPUS, "nvidia-h200-141gb:8 on a3-highgpu-8g in us-central1", "?not-listed machine-family"),
    (GPUS, "nvidia-h200-141gb:8 in us-central1", "?not-listed machine-missing"),
    (GPUS, "nvidia-b200:8 on a4-highgpu-8g in us-central1", "?not-listed ?not-on-demand"),
    (GPUS, "nvidia-gb200:4 on a4x-highgpu-4g in us-central1", "unknown-accelerator"),
    (GPUS, "nvidia-gb300:4 on a4x-maxgpu-4g-metal in us-central1", "unknown-accelerator"),
    (GPUS, "nvidia-rtx-pro-6000 on g4-standard-48 in us-central1", "?not-listed"),
    (GPUS, "nvidia-rtx-pro-6000:8 on g4-standard-384 in us-central1", "?not-listed"),
    # The machine types, with the counts they have
    *[(L4, f"nvidia-l4 on g2-standard-{n} in us-central1", "") for n in (4, 8, 12, 16, 32)],
    *[(L4, f"nvidia-l4:{n // 12} on g2-standard-{n} in us-central1", "") for n in (24, 48, 96)],
    *[(L4, f"nvidia-l4 on g2-standard-{n} in us-central1", "machine-count") for n in (24, 48, 96)],
    *[(L4, f"nvidia-l4:2 on g2-standard-{n} in us-central1", "machine-count") for n in (4, 8, 12, 16, 32, 48, 96)],
    (L4, "nvidia-l4 on n1-standard-4 in us-central1", "machine-family"),
    *[(MACHINES, f"nvidia-tesla-a100:{n} on a2-highgpu-{n}g in us-central1", "") for n in (1, 2, 4, 8)],
    *[(MACHINES, f"nvidia-tesla-a100:{n} on a2-highgpu-{2 * n}g in us-central1", "machine-count") for n in (1, 2, 4)],
    (MACHINES, "nvidia-tesla-a100:16 on a2-megagpu-16g in us-central1", ""),
    (MACHINES, "nvidia-tesla-a100:8 on a2-megagpu-16g in us-central1", "machine-count"),
    *[(MACHINES, f"nvidia-a100-80gb:{n} on a2-ultragpu-{n}g in us-central1", "") for n in (1, 2, 4, 8)],
    (MACHINES, "nvidia-a100-80gb on a2-highgpu-1g in us-central1", "machine-accelerator"),
    (MACHINES, "nvidia-tesla-a100 on a2-ultragpu-1g in us-central1", "machine-accelerator"),
    *[(HOSTS, f"nvidia-h100-80gb:{n} on a3-highgpu-{n}g in us-central1", "?not-on-demand") for n in (1, 2, 4)],
    (MACHINES, "nvidia-h100-80gb:8 on a3-highgpu-8g in us-central1", ""),
    (MACHINES, "nvidia-h100-80gb:8 on a3-edgegpu-8g in us-central1", ""),
    (MACHINES, "nvidia-h100-80gb:8 on a3-edgegpu-8g-nolssd in us-central1", ""),
    (MACHINES, "nvidia-h100-80gb on a3-highgpu-8g in us-central1", "machine-count"),
    (MACHINES, "nvidia-h100-mega-80gb:8 on a3-megagpu-8g in us-central1", ""),
    (MACHINES, "nvidia-h100-80gb:8 on a3-megagpu-8g in us-central1", "machine-accelerator"),
    (MACHINES, "nvidia-h100-mega-80gb:4 on a3-megagpu-8g in us-central1", "count-invalid"),
    # The largest N1 hosts
    *[
        (HOSTS, f"nvidia-tesla-{gpu}:{count} on n1-standard-{vcpus} in us-central1", "")
        for gpu, hosts in {
            "t4": {1: 32, 2: 32, 4: 96},
            "p4": {1: 16, 2: 32, 4: 96},
            "v100": {1: 8, 2: 16, 4: 32, 8: 96},
            "p100": {1: 16, 2: 32, 4: 96},
        }.items()
        for count, vcpus in hosts.items()
    ],
    *[
        (HOSTS, f"nvidia-tesla-{gpu}:{count} on n1-standard-{vcpus} in us-central1", "host-too-large")
        for gpu, hosts in {
            "t4": {1: 64, 2: 64},
            "p4": {1: 32, 2: 64},
            "v100": {1: 16, 2: 32, 4: 64},
            "p100": {1: 32, 2: 64},
        }.items()
        for count, vcpus in hosts.items()
    ],
    *[
        (HOSTS, f"nvidia-tesla-p100:4 on n1-standard-96 in {zone}", "host-too-large")
        for zone in ("us-east1-c", "europe-west1-d", "europe-west1-b")
    ],
    *[(HOSTS, f"nvidia-tesla-{gpu}:8 in us-central1", "count-invalid") for gpu in ("t4", "p4", "p100")],
    *[
        (HOSTS, f"nvidia-tesla-t4 on {machine} in us-central1", "machine-family")
        for machine in (
            "n2-standard-8",
            "e2-standard-8",
            "n2d-standard-8",
            "c3-standard-8",
            "f1-micro",
            "g1-small",
            "t2a-standard-8",
        )
    ],
    (GPU, "nvidia-tesla-t4 on n1-standard-1 in us-central1", ""),
    (GPU, "nvidia-tesla-t4 on n1-custom-1-6656 in us-central1", ""),
    (GPU, "nvidia-tesla-t4 on n1-custom-1-13312-ext in us-central1", ""),
    (GPU, "nvidia-tesla-t4 on n1-custom-1-13312 in us-central1", "custom-machine"),
    (GPU, "nvidia-tesla-t4 on n1-highmem-16 in us-central1", ""),
    (GPU, "nvidia-tesla-t4 on n1-highcpu-16 in us-central1", ""),
    (GPU, "nvidia-tesla-t4 on n1-highcpu-1 in us-central1", "unknown-machine"),
    # An accelerator's machine without its accelerator
    (TPU_TROUBLE, "cpu on g2-standard-4 in us-central1", "?cpu-first machine-carries-accelerator"),
    (TPU_TROUBLE, "cpu on ct5lp-hightpu-1t in us-central1", "?cpu-first machine-carries-accelerator"),
    # The other operator's
    (TPUS, "tpu-v6e-slice:1x1 in us-east5", "wrong-operator"),
    (TPUS, "tpu-v6e-slice:4 in us-east5", "wrong-operator"),
    (TPUS, "v5e:1x1 in us-east5", "wrong-operator"),
]

V5E, V6E, V5P = "tpu-v5-lite-podslice", "tpu-v6e-slice", "tpu-v5p-slice"
TRIPLES = [
    (V5E, "1x1", "ct5lp-hightpu-1t", 1, 24, 48),
    (V5E, "2x2", "ct5lp-hightpu-4t", 4, 112, 192),
    (V5E, "2x4", "ct5lp-hightpu-8t", 8, 224, 384),
    (V6E, "1x1", "ct6e-standard-1t", 1, 44, 176),
    (V6E, "2x2", "ct6e-standard-4t", 4, 180, 720),
    (V6E, "2x4", "ct6e-standard-8t", 8, 360, 1440),
    (V5P, "2x2x1", "ct5p-hightpu-4t", 4, 208, 448),
]
ZONE = {V5E: "us-west4-a", V6E: "us-east5-b", V5P: "us-east5-a"}

# Places of the TPU operator, with few threads.
TPU_PLACES: list[tuple[str, Any, str]] = [
    *[(TPUS, f"{type_}:{shape} in {ZONE[type_]}", "") for type_, shape, *_ in TRIPLES],
    *[(TPUS, f"{type_}:{shape} on {machine} in {ZONE[type_]}", "") for type_, shape, machine, *_ in TRIPLES],
    *[(TPU, f"{type_}:{shape.replace('x', '×')} in {ZONE[type_]}", "") for type_, shape, *_ in TRIPLES],
    *[
        (TPUS, f"{type_}:{shape} on {machine} in {ZONE[type_]}", "machine-of-tpu")
        for type_, shape, right, *_ in TRIPLES
        for _, _, machine, *_ in TRIPLES
        if machine != right
    ],
    *[(TPUS, f"{type_}:{shape} on n1-standard-8 in {ZONE[type_]}", "machine-of-tpu") for type_, shape, *_ in TRIPLES],
    *[(TPUS, f"{V5E}:{shape} in us-west4-a", "topology-invalid") for shape in ("1x2", "4x2", "4x4", "2x2x1", "16x16")],
    *[(TPUS, f"{V6E}:{shape} in us-east5-b", "topology-invalid") for shape in ("1x2", "4x2", "4x4", "2x2x1", "16x16")],
    *[(TPUS, f"{V5P}:{shape} in us-east5-a", "topology-invalid") for shape in ("2x2", "1x1", "2x2x2", "4x4x4")],
    *[(TPUS, f"{type_}:4 in {ZONE[type_]}", "count-of-tpu") for type_ in ZONE],
    *[(TPUS, f"{type_} in {ZONE[type_]}", "placement-invalid") for type_ in ZONE],
    (TPUS, "tpu-v4-podslice:2x2x1 in us-central2", "unknown-accelerator ?unknown-region"),
    (TPUS, "tpu-v5e:1x1 in us-west4-a", "unknown-accelerator"),
    (TPUS, "v6e:1x1 in us-east5-b", "unknown-accelerator"),
    (TPUS, "ct5lp:1x1 in us-west4-a", "unknown-accelerator"),
    (TPUS, "tpu-v6f-slice:1x1 in us-east5-b", "unknown-accelerator"),
    # The zones that the pages name
    *[
        (TPU_ZONES, f"{V6E}:1x1 in {zone}", "")
        for zone in (
            "us-central1-b",
            "us-east1-d",
            "us-east5-a",
            "us-east5-b",
            "us-central1-ai1",
            "us-south1-ai1b",
            "europe-west4-a",
        )
    ],
    *[(TPU_ZONES, f"{V5P}:2x2x1 in {zone}", "") for zone in ("us-central1-a", "us-east5-a")],
    *[(TPU_ZONES, f"{V5E}:1x1 in {zone}", "") for zone in ("us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a")],
    (TPU_ZONES, f"{V6E}:1x1 in asia-northeast1-b", "?zone-undocumented"),
    (TPU_ZONES, f"{V5P}:2x2x1 in europe-west4-b", "?zone-undocumented"),
    (TPU_ZONES, f"{V5E}:1x1 in europe-west4-a", "?zone-undocumented"),
    (TPU_ZONES, f"{V6E}:1x1 in us-east5-c", "?zone-undocumented"),
    (TPU_ZONES, f"{V6E}:1x1 in us-central1-f", "?not-offered"),
    (TPU_ZONES, f"{V6E}:1x1 in us-east5", ""),
    (TPU_ZONES, f"{V6E}:1x1 in me-west1", "?not-offered"),
    # A GPU comes after a TPU, not before it
    (TPUS, "nvidia-l4 in us-central1", "wrong-operator"),
    (TPUS, [f"{V6E}:1x1 in us-east5-b", "nvidia-l4 in us-central1"], ""),
    (TPUS, [f"{V6E}:1x1 in us-east5-b", "nvidia-l4:3 in us-central1"], "count-invalid"),
    (TPUS, [f"{V6E}:1x1 in us-east5-b", "cpu in us-central1"], ""),
    (TPUS, [f"{V6E}:1x1 in us-east5-b", f"{V5P}:2x2x1 in us-east5-a"], "?image-of-another-slice"),
    (TPUS, [f"{V6E}:1x1 in us-east5-b", f"{V6E}:1x1 in us-east5-a"], ""),
]

L4_OPTION = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"
RESERVATION = "reservation=projects/p/zones/us-east1-b/reservations/r"
HINT = "accelerator=type:nvidia-tesla-t4;count:1;install-nvidia-driver"
CPU = "cpu on n1-standard-8 in us-central1"

# What a request says besides the place, first of the GPU operator, then of the TPU operator.
GPU_VALUES: list[tuple[str, str, dict[str, Any], str]] = [
    (L4, PLACE, {"beam_version": "2.45.0"}, "beam-too-old"),
    (L4, PLACE, {"beam_version": "2.46.0"}, "?beam-old"),
    (L4, PLACE, {"beam_version": "2.50.0"}, ""),
    (L4, PLACE, {"driver_version": "525"}, ""),
    (L4, PLACE, {"driver_version": "5xx"}, ""),
    (L4, PLACE, {"driver_version": "470"}, "driver-too-old"),
    (L4, PLACE, {"sdk_container_image": "nvidia/cuda:11.8.0-runtime"}, "?cuda-too-old"),
    (L4, PLACE, {"sdk_container_image": "nvidia/cuda:12.0.0-runtime"}, ""),
    (GPU, "nvidia-tesla-t4 in us-central1", {"sdk_container_image": "nvidia/cuda:11.0.3-runtime"}, ""),
    (GPU, "nvidia-tesla-t4 in us-central1", {"beam_version": "2.29.0"}, "beam-too-old"),
    (GPU, "nvidia-tesla-t4 in us-central1", {"beam_version": "2.30.0"}, ""),
    (GPU, "nvidia-tesla-t4 in us-central1", {"beam_version": "2.29.0", "sdk_container_image": None}, "?image-missing"),
    (GPU, PLACE, {"disk_size_gb": 50}, ""),
    (GPU, PLACE, {"disk_size_gb": 30}, "?small-disk"),
    (GPU, PLACE, {"experiments": ["use_runner_v2"]}, ""),
    (GPU, PLACE, {"experiments": ["no_use_multiple_sdk_containers"]}, ""),
    (GPUS, PLACE, {"experiments": ["disable_runner_v2"]}, "runner-v2"),
    (GPUS, PLACE, {"experiments": ["disable_runner_v2_until_2023"]}, "runner-v2"),
    (GPUS, PLACE, {"experiments": ["use_runner_v1"]}, "runner-v2"),
    (GPUS, CPU, {"experiments": ["disable_runner_v2"]}, "?cpu-first"),
    (GPU, PLACE, {"service_options": ["enable_prime"]}, "prime"),
    (GPU, PLACE, {"experiments": ["enable_prime"]}, "prime"),
    (GPU, CPU, {"service_options": ["enable_prime"]}, "?cpu-first"),
    (GPU, PLACE, {"service_options": [L4_OPTION]}, "accelerator-pinned"),
    (GPU, PLACE, {"experiments": [L4_OPTION]}, "accelerator-pinned"),
    (GPU, PLACE, {"service_options": [f"{L4_OPTION};new-token:1"]}, "?accelerator-token"),
    (GPU, "nvidia-l4:2 in us-central1", {"service_options": [f"{L4_OPTION};new-token"]}, "accelerator-pinned"),
    (GPU, CPU, {"service_options": [L4_OPTION]}, "?cpu-first accelerator-pinned"),
    (MPS, PLACE, {"use_mps": True, "sdk_processes": "per_vcpu"}, ""),
    (MPS, PLACE, {"use_mps": True}, "mps-with-one-process"),
    (
        MPS,
        PLACE,
        {"use_mps": True, "sdk_processes": "per_vcpu", "experiments": ["no_use_multiple_sdk_containers"]},
        "processes-contradicted",
    ),
    (GPU, PLACE, {"service_options": ["worker_acelerator=type:nvidia-l4"]}, "?extra-spelling"),
    (GPU, PLACE, {"service_options": ["--enable_prime"]}, "?extra-spelling"),
    (GPU, PLACE, {"service_options": ["install-nvidia-driver"]}, "?accelerator-token"),
    (GPU, PLACE, {"service_options": ["type:nvidia-l4;count:1;install-nvidia-driver"]}, "?accelerator-token"),
    (GPU, PLACE, {"use_public_ips": True, "options": {"no_use_public_ips": True}}, "said-twice"),
    (GPU, PLACE, {"use_public_ips": False, "options": {"no_use_public_ips": True}}, ""),
    (MPS, CPU, {"use_mps": True, "sdk_processes": "per_vcpu"}, "?gpu-only ?cpu-first"),
    (HINTS, PLACE, {"options": {"resource_hints": [HINT]}}, "accelerator-hint"),
    (HINTS, PLACE, {"options": {"resource_hint": HINT}}, "accelerator-hint"),
    (HINTS, PLACE, {"options": {"resource_hints": ["min_ram=30GB"]}}, "?right-fitting"),
    (HINTS, PLACE, {"options": {"resource_hints": ["cpu_count=4"]}}, "?right-fitting"),
    (HINTS, PLACE, {"experiments": ["enable_streaming_rightfitting"]}, "?right-fitting"),
    (HINTS, CPU, {"options": {"resource_hints": [HINT]}}, "?cpu-first"),
    (HINTS, CPU, {"options": {"resource_hints": [HINT]}, "beam_version": "2.30.0"}, "?cpu-first beam-too-old"),
    (HINTS, CPU, {"options": {"resource_hints": [HINT]}, "beam_version": "2.31.0"}, "?cpu-first"),
    (HINTS, CPU, {"options": {"resource_hints": ["accelerator=type:tpu-v6e-slice"]}}, "?cpu-first hint-tpu"),
    (HINTS, CPU, {"options": {"resource_hints": [f"{HINT};machine_type:n1-standard-4"]}}, "?cpu-first ?hint-machine"),
    (HINTS, CPU, {"options": {"resource_hints": [f"{HINT};else"]}}, "?cpu-first ?accelerator-token"),
    (HINTS, CPU, {"options": {"resource_hints": [HINT], "streaming": True}}, "?cpu-first ?hint-streaming"),
    (
        HINTS,
        CPU,
        {
            "options": {"resource_hints": [HINT], "streaming": True},
            "experiments": ["enable_streaming_rightfitting"],
        },
        "?cpu-first",
    ),
    (
        HINTS,
        CPU,
        {"options": {"resource_hints": [HINT], "flexrs_goal": "COST_OPTIMIZED"}},
        "?cpu-first hint-flexrs",
    ),
    (RESERVATIONS, PLACE, {"service_options": ["automatically_use_created_reservation"]}, ""),
    (
        RESERVATIONS,
        "nvidia-tesla-t4 in us-central1",
        {
            "service_options": ["automatically_use_created_reservation"],
            "beam_version": "2.28.0",
            "options": {},
            "sdk_container_image": None,
        },
        "beam-too-old ?image-missing",
    ),
    (RESERVATIONS, PLACE, {"experiments": ["skip_gce_quota_verification"]}, ""),
    (
        RESERVATIONS,
        CPU,
        {"service_options": ["automatically_use_created_reservation", "enable_prime"]},
        "?cpu-first reservation-prime",
    ),
    (RESERVATIONS, PLACE, {"service_options": ["use_reservation=r"]}, "?reservation-zone"),
    (RESERVATIONS, "nvidia-l4 in us-central1-a", {"service_options": ["use_reservation=r"]}, ""),
    (RESERVATIONS, PLACE, {"service_options": [RESERVATION]}, "reservation-region"),
    (RESERVATIONS, "nvidia-l4 in us-east1-b", {"service_options": [RESERVATION]}, ""),
    (RESERVATIONS, "nvidia-l4 in us-east1-c", {"service_options": [RESERVATION]}, "reservation-zone"),
    (RESERVATIONS, "nvidia-l4 in us-east1", {"service_options": [RESERVATION]}, "?reservation-zone"),
    (FLEXRS, PLACE, {"options": {"flexrs_goal": "COST_OPTIMIZED"}}, "flexrs"),
    (FLEXRS, PLACE, {"options": {"flexrs_goal": "SPEED_OPTIMIZED"}}, ""),
    (FLEXRS, CPU, {"options": {"flexrs_goal": "COST_OPTIMIZED"}}, "?cpu-first"),
    (FLEXRS, "cpu in us-central1-a", {"options": {"flexrs_goal": "COST_OPTIMIZED"}}, "?cpu-first flexrs-zone"),
    (
        FLEXRS,
        CPU,
        {
            "options": {"flexrs_goal": "COST_OPTIMIZED"},
            "service_options": ["automatically_use_created_reservation"],
        },
        "?cpu-first flexrs-reservation",
    ),
    (f"{DOCS}/reference/service-options", PLACE, {"service_options": ["max_workflow_runtime_walltime_seconds=60"]}, ""),
    (
        f"{DOCS}/reference/service-options",
        PLACE,
        {"service_options": ["max_workflow_runtime_walltime_seconds=1h"]},
        "walltime",
    ),
    (
        f"{DOCS}/reference/service-options",
        PLACE,
        {"service_options": ["max_workflow_runtime_walltime_seconds=60"], "options": {"streaming": True}},
        "?walltime",
    ),
    (f"{DOCS}/release-notes", PLACE, {"service_options": ["some_flex_start_option"]}, ""),
    ("Dataflow API v1b3", PLACE, {"experiments": ["worker_zone=us-central1-a"]}, "option-pinned"),
    ("Dataflow API v1b3", PLACE, {"experiments": ["an_experiment_of_one_customer=1"]}, ""),
    ("Beam 2.77", PLACE, {"options": {"temp_location": "gs://acme-europe-west4/tmp"}}, "?bucket-region"),
    ("Beam 2.77", PLACE, {"options": {"temp_location": "gs://acme-us-central1/tmp"}}, ""),
    ("Beam 2.77", "nvidia-l4 in us-east1", {"options": {"temp_location": "gs://acme-us-east1/tmp"}}, ""),
    ("Beam 2.77", "nvidia-l4 in europe-west1", {"options": {"temp_location": "gs://x-europe-west1-b/t"}}, ""),
]

SMALL, LARGE = f"{V6E}:1x1 in us-east5-b", f"{V6E}:2x2 in us-east5-b"
TPU_VALUES: list[tuple[str, str, dict[str, Any], str]] = [
    *[
        (TPU, f"{type_}:{shape} in {ZONE[type_]}", {}, "?many-threads" if vcpus > 100 else "")
        for type_, shape, _, _, vcpus, _ in TRIPLES
    ],
    (TPU_TROUBLE, LARGE, {"number_of_worker_harness_threads": 50}, ""),
    (TPU_TROUBLE, LARGE, {"number_of_worker_harness_threads": 51}, "?many-threads"),
    (TPU_TROUBLE, LARGE, {"number_of_worker_harness_threads": 0}, "?many-threads"),
    (TPU, SMALL, {"number_of_worker_harness_threads": 500}, ""),
    (TPU, SMALL, {"disk_size_gb": 100}, ""),
    (TPU, SMALL, {"disk_size_gb": 50}, ""),
    (TPU, SMALL, {"disk_size_gb": 49}, "?small-disk"),
    (TPU, SMALL, {"sdk_container_image": None}, "?image-missing"),
    (TPU, SMALL, {"experiments": ["no_use_multiple_sdk_containers"]}, ""),
    (TPU, SMALL, {"sdk_processes": "per_vcpu"}, "?processes-on-tpu"),
    (TPU, SMALL, {"beam_version": "2.66.0"}, ""),
    (TPUS, SMALL, {"service_options": ["enable_prime"]}, "prime"),
    (TPUS, SMALL, {"options": {"resource_hints": ["accelerator=type:tpu-v6e-slice;topology:1x1"]}}, "accelerator-hint"),
    (TPUS, SMALL, {"options": {"resource_hints": ["min_ram=30GB"]}}, "?right-fitting"),
    (TPUS, SMALL, {"service_options": ["worker_accelerator=type:tpu-v6e-slice;topology:1x1"]}, "accelerator-pinned"),
    (TPUS, SMALL, {"options": {"flexrs_goal": "COST_OPTIMIZED"}}, "flexrs"),
    (TPUS, SMALL, {"options": {"streaming": True}}, ""),
    (f"{DOCS}/release-notes", SMALL, {"service_options": ["some_flex_start_option"]}, "flex-start"),
    (RESERVATIONS, SMALL, {"service_options": ["automatically_use_created_reservation"]}, ""),
    (RESERVATIONS, SMALL, {"service_options": ["use_reservation=r"]}, ""),
    (TPU_TROUBLE, SMALL, {"service_options": [RESERVATION]}, "reservation-region"),
    (TPUS, SMALL, {"driver_version": "535"}, "?gpu-only"),
    (TPUS, SMALL, {"use_mps": True, "sdk_processes": "per_vcpu"}, "?gpu-only ?processes-on-tpu"),
]


def codes(*places: Any, **parameters: Any) -> list[str]:
    """Return the codes of all problems, warnings with a question mark."""
    found = told(check(*places, wait_until="proven", **parameters))
    return [code if severity == "error" else f"?{code}" for severity, code, _ in found]


def ids(rows: list[Any]) -> list[str]:
    return [f"{row[1]} {row[2] if len(row) > 3 else ''}"[:70] for row in rows]


@pytest.mark.parametrize(("source", "place", "said"), GPU_PLACES, ids=ids(GPU_PLACES))
def test_place_of_the_gpu_operator(source: str, place: str, said: str) -> None:
    """What a page says of an accelerator on a machine in a place is what is said of it here."""
    assert source
    assert codes(place) == said.split()


@pytest.mark.parametrize(("source", "places", "said"), TPU_PLACES, ids=ids(TPU_PLACES))
def test_place_of_the_tpu_operator(source: str, places: Any, said: str) -> None:
    """Exactly the combinations of type, topology and machine type that the page lists pass, in either spelling."""
    assert source
    listed = [places] if isinstance(places, str) else places
    assert codes(*listed, operator="tpu", number_of_worker_harness_threads=50) == said.split()


@pytest.mark.parametrize(("source", "place", "parameters", "said"), GPU_VALUES, ids=ids(GPU_VALUES))
def test_request_of_the_gpu_operator(source: str, place: str, parameters: dict[str, Any], said: str) -> None:
    """What a page rules out in a request for GPUs is an error, what it advises against a warning, the rest passes."""
    assert source
    assert codes(place, **parameters) == said.split()


@pytest.mark.parametrize(("source", "place", "parameters", "said"), TPU_VALUES, ids=ids(TPU_VALUES))
def test_request_of_the_tpu_operator(source: str, place: str, parameters: dict[str, Any], said: str) -> None:
    """What a page rules out in a request for TPUs is an error, what it advises against a warning, the rest passes."""
    assert source
    assert codes(place, operator="tpu", **parameters) == said.split()


@pytest.mark.parametrize("row", TRIPLES, ids=[f"{row[0]} {row[1]}" for row in TRIPLES])
def test_tpu_host(row: tuple[str, str, str, int, int, int]) -> None:
    """A slice has the machine type, chips, vCPUs and memory of the page's table."""
    known = CATALOG.tpu(row[0], row[1])
    assert known
    assert (known.machine_type, known.chips, known.vcpus, known.memory_gb) == row[2:]


ENVIRONMENTS = [
    (V5E, "1x1", "v5litepod-1", "1,1,1"),
    (V5E, "2x2", "v5litepod-4", "2,2,1"),
    (V5E, "2x4", "v5litepod-8", "2,4,1"),
    (V6E, "1x1", "v6e-1", "1,1,1"),
    (V6E, "2x2", "v6e-4", "2,2,1"),
    (V6E, "2x4", "v6e-8", "2,4,1"),
    (V5P, "2x2x1", "v5p-8", "2,2,1"),
]


@pytest.mark.parametrize("row", ENVIRONMENTS, ids=[f"{row[0]} {row[1]}" for row in ENVIRONMENTS])
def test_tpu_container(row: tuple[str, str, str, str]) -> None:
    """A slice's container has the environment of the page's table, and what the page has for all of them."""
    known = CATALOG.tpu(row[0], row[1])
    assert known
    assert dict(known.environment) == {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_HOST_BOUNDS": "1,1,1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        "TPU_ACCELERATOR_TYPE": row[2],
        "TPU_CHIPS_PER_HOST_BOUNDS": row[3],
    }


@pytest.mark.parametrize(
    ("name", "right"),
    [
        *[(environment, f"{shape} of {type_}") for type_, shape, environment, _ in ENVIRONMENTS],
        ("v3-8", "tpu-v5-lite-podslice"),
        ("v4-8", "tpu-v5p-slice"),
    ],
)
def test_cloud_tpus_own_name(name: str, right: str) -> None:
    """What Cloud TPU calls a slice is told apart from GPUs, with what Dataflow calls it or the nearest it has."""
    [problem] = check(f"{name} in us-east5-b", operator="tpu")
    assert problem.code == "unknown-accelerator"
    assert problem.message.endswith(f" {right}.")


# The pages' names for the same thing in Python, Java and Go.
SPELLINGS = [
    ("machine_type", "workerMachineType", "worker_machine_type"),
    ("disk_size_gb", "diskSizeGb", "disk_size_gb"),
    ("sdk_container_image", "sdkContainerImage", "sdk_container_image"),
    ("worker_harness_container_image", "workerHarnessContainerImage", "worker_harness_container_image"),
    ("worker_zone", "workerZone", "worker_zone"),
    ("worker_region", "workerRegion", "worker_region"),
    ("dataflow_service_options", "dataflowServiceOptions", "dataflow_service_options"),
    ("number_of_worker_harness_threads", "numberOfWorkerHarnessThreads", "number_of_worker_harness_threads"),
]


@pytest.mark.parametrize(("python", "java", "go"), SPELLINGS, ids=[row[0] for row in SPELLINGS])
def test_option_is_spelled_as_each_page_does(python: str, java: str, go: str) -> None:
    """An option has the name in each SDK that Google's pages write for it."""
    assert python in load_options("python").options
    assert load_options("java").name_of(python) == java
    assert load_options("go").name_of(python) == go


@pytest.mark.parametrize(
    ("sdk", "expected"),
    # Source: https://cloud.google.com/dataflow/docs/gpu/use-l4-gpus.
    [
        ("java", ["--workerMachineType=g2-standard-4", f"--dataflowServiceOptions={L4_OPTION}"]),
        ("python", ["--machine_type=g2-standard-4", f"--dataflow_service_options={L4_OPTION}"]),
        ("go", ["--worker_machine_type=g2-standard-4", f"--dataflow_service_options={L4_OPTION}"]),
    ],
)
def test_the_l4_pages_own_options_are_rendered(sdk: Sdk, expected: list[str]) -> None:
    """Each SDK gets machine type and accelerator exactly as the L4 page writes them for it."""
    candidate = resolve(Candidate.parse("nvidia-l4 on g2-standard-4 in us-central1"), CATALOG)
    render = {"python": beam_flags, "java": java_flags, "go": go_flags}[sdk]
    rendered = render(
        BeamRequest().for_candidate(candidate, sdk), candidate.placement, project="p", job_name="j", labels={}
    )
    assert set(expected) <= set(rendered)


@settings(max_examples=150, deadline=None)
@given(placements(), st.sampled_from(["gpu", "tpu"]))
def test_a_place_means_the_same_in_every_spelling(placement: Placement, operator: Operator) -> None:
    """A placement as a value, as its canonical text and in capitals has the same problems."""
    candidate = Candidate(placement=placement)
    request = BeamRequest(py_file="gs://acme/score.py")
    found = check_beam(request, [candidate], catalog=CATALOG, operator=operator)
    for text in (str(placement), str(placement).upper()):
        assert check_beam(request, read_candidates(text)[0], catalog=CATALOG, operator=operator) == found
    if not any(problem.is_error for problem in found):
        resolved = resolve(candidate, CATALOG)
        again = check_beam(request, [resolved], catalog=CATALOG, operator=operator)
        assert not any(problem.is_error for problem in again)


def test_the_pages_own_command_passes() -> None:
    """The commands of the GPU and TPU pages, said as a placement, have nothing wrong with them."""
    options = {"temp_location": "gs://BUCKET/tmp"}
    assert (
        codes("nvidia-tesla-t4 in us-central1", options=options, disk_size_gb=50, experiments=["use_runner_v2"]) == []
    )
    tpu = "tpu-v5-lite-podslice:1x1 on ct5lp-hightpu-1t in us-central1"
    assert codes(tpu, operator="tpu", options=options, disk_size_gb=100, number_of_worker_harness_threads=50) == []


def test_rules_have_their_source_and_none_is_there_twice() -> None:
    """Every rule of a table says where it is from, and no two are about the same words on the same worker."""
    pairs = [(rule.pattern, kind) for rule in RULES for kind in rule.kinds]
    assert len(set(pairs)) == len(pairs)
    assert all(rule.source for rule in RULES)
    assert all(minimum.source.startswith("https://") for minimum in MINIMUMS)
