"""``python -m airflow_accel_provider.cli`` is ``accel``."""

from __future__ import annotations

import sys

from airflow_accel_provider.cli import main

sys.exit(main())
