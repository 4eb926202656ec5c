"""Every API method the emulator answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.emulator import iamcredentials, oauth
from airflow_accel_provider.emulator.cloudquotas import methods as cloudquotas
from airflow_accel_provider.emulator.compute import methods as compute
from airflow_accel_provider.emulator.compute import offers, operations, reserving
from airflow_accel_provider.emulator.dataflow import methods as dataflow
from airflow_accel_provider.emulator.dataflow import template_methods as templates
from airflow_accel_provider.emulator.dataproc import methods as dataproc
from airflow_accel_provider.emulator.monitoring import methods as monitoring
from airflow_accel_provider.emulator.storage import methods as storage

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.wire import Method

METHODS: tuple[Method, ...] = (
    *storage.METHODS,
    *oauth.METHODS,
    *iamcredentials.METHODS,
    *dataflow.METHODS,
    *templates.METHODS,
    *dataproc.METHODS,
    *compute.METHODS,
    *offers.METHODS,
    *monitoring.METHODS,
    *reserving.METHODS,
    *operations.METHODS,
    *cloudquotas.METHODS,
)
