"""What a job's workers can be told, all at once, for tests of what becomes of it."""

from __future__ import annotations

from typing import Any

WORKERS: dict[str, Any] = {
    "num_workers": 1,
    "max_num_workers": 4,
    "disk_size_gb": 100,
    "service_account_email": "worker@acme-ml-prod.iam.gserviceaccount.com",
    "network": "acme",
    "subnetwork": "regions/{region}/subnetworks/ml",
    "use_public_ips": False,
    "dataflow_kms_key": "projects/acme/locations/{region}/keyRings/ml/cryptoKeys/beam",
    "labels": {"team": "ml"},
    "driver_version": "535",
    "number_of_worker_harness_threads": 8,
    "experiments": ("upload_graph",),
}
