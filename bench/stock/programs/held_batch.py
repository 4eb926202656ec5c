"""A batch that takes until a file appears."""

from __future__ import annotations

import sys
import time
from pathlib import Path

end = time.monotonic() + 600
while not Path(sys.argv[1]).exists() and time.monotonic() < end:
    time.sleep(0.2)
