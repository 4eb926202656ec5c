"""Cloud Storage: the JSON API over a store of its own, on the same address as everything else."""

from __future__ import annotations

from airflow_accel_provider.emulator.storage.store import Buckets

__all__ = ["Buckets"]
