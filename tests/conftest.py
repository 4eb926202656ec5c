"""What holds for all tests."""

from __future__ import annotations

import os

# Triggers wait for supervisors to report before they fire; where this is 0, as here, there is nothing to wait for.
# Stacks of real Airflow processes set their own.
os.environ["AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL"] = "0"
