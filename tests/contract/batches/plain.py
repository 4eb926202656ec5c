"""Says its arguments, and then waits for as long as the first one says."""

import sys
import time

sys.stdout.write(f"SAID {' '.join(sys.argv[1:])}\n")
sys.stdout.flush()
time.sleep(float(sys.argv[1]))
