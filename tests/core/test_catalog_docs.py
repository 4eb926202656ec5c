"""What the documentation says of the catalogue is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.forms import FORMS

TEXT = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text(encoding="utf-8")


def test_every_table_is_described_with_its_key() -> None:
    """The documentation has a row for each table, and says by which columns its rows are known."""
    rows = dict(re.findall(r"^\| `(\w+)` \| .+ \| (.+?) \|$", TEXT, re.MULTILINE))
    assert list(rows) == list(FORMS)
    for name, form in FORMS.items():
        if form.value is None:
            assert rows[name] == ", ".join(column.replace("_", " ") for column in form.key)


def test_the_example_is_an_overlay() -> None:
    """The overlay in the documentation can be laid over the catalogue, and adds what it says."""
    (example,) = re.findall(r"```json\n(.+?)```", TEXT, re.DOTALL)
    merged = load_catalog().merged(json.loads(example))
    assert merged.accelerator("nvidia-b200") is not None
    assert merged.zones_of("nvidia-b200") == ("us-central1-b",)
    assert merged.default_machine(Gpu("nvidia-b200", 8)) == "a4-highgpu-8g"
