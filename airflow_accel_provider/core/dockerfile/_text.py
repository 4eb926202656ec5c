"""The lines of a Dockerfile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from airflow_accel_provider.core.accelerators import Tpu
from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.dockerfile._image import Image, is_bare_cuda, minor_of, release_of
from airflow_accel_provider.core.placement import Placement


def gpu_blocks(image: Image, base: str) -> Iterator[str]:
    """Yield the Dockerfile of an image for GPUs, block by block."""
    python = image.python_version
    yield f"FROM {base}"
    if is_bare_cuda(base):
        yield from _installed_python(python)
    else:
        yield _python_check(python)
    yield _run(f"pip install --no-cache-dir {_requirements(image)}", "pip check")
    yield from _boot(image)
    yield (
        "# The driver that Dataflow installs on the worker is mounted there.\n"
        "ENV LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/cuda/lib64:${LD_LIBRARY_PATH}"
    )
    yield _ENTRYPOINT


def tpu_blocks(image: Image, base: str, placement: Placement, catalog: Catalog) -> Iterator[str]:
    """Yield the Dockerfile of an image for TPUs, block by block."""
    yield f"FROM {base}"
    yield _python_check(image.python_version)
    yield "\n".join(
        [
            f"# One host with {placement.accelerator}.",
            *(f"ENV {name}={value}" for name, value in _tpu_environment(placement, catalog).items()),
        ]
    )
    libtpu = "https://storage.googleapis.com/jax-releases/libtpu_releases.html"
    yield _run(f"pip install --no-cache-dir {_requirements(image, 'jax[tpu]')} -f {libtpu}", "pip check")
    yield from _boot(image)
    yield _ENTRYPOINT


_ENTRYPOINT = 'ENTRYPOINT ["/opt/apache/beam/boot"]'


def _tpu_environment(placement: Placement, catalog: Catalog) -> Mapping[str, str]:
    tpu = placement.accelerator
    shape = catalog.tpu(tpu.type, tpu.topology) if isinstance(tpu, Tpu) else None
    return shape.environment if shape else {}


def _installed_python(python: str) -> Iterator[str]:
    # Newer Ubuntus keep pip away from their own Python, which here is nobody's but the pipeline's.
    yield (
        "# The image has no Python; the one that launches the pipeline is installed.\n"
        "ENV DEBIAN_FRONTEND=noninteractive PIP_BREAK_SYSTEM_PACKAGES=1"
    )
    yield _run(
        "apt-get update",
        "apt-get install -y --no-install-recommends ca-certificates g++ software-properties-common",
        "add-apt-repository -y ppa:deadsnakes/ppa",
        f"apt-get install -y --no-install-recommends python{python} python{python}-dev python{python}-venv",
        "rm -rf /var/lib/apt/lists/*",
        f"update-alternatives --install /usr/bin/python python /usr/bin/python{python} 10",
        f"update-alternatives --install /usr/bin/python3 python3 /usr/bin/python{python} 10",
    )
    # Ubuntu's own Pythons have no ensurepip but in virtual environments, and its pip package serves only these Pythons.
    yield "# The pip of a virtual environment installs the image's own.\n" + _run(
        "python -m venv /tmp/venv",
        f"PYTHONPATH=/tmp/venv/lib/python{python}/site-packages python -m pip install --no-cache-dir --ignore-installed"
        " pip setuptools wheel",
        "rm -r /tmp/venv",
    )


def _python_check(python: str) -> str:
    asked = f"import sys; sys.exit(sys.version_info[:2] != (3, {minor_of(python)}))"
    comment = "# The Python of the image must be the one that launches the pipeline."
    return f'{comment}\nRUN python -c "{asked}" || {{ echo "The image has another Python than {python}."; exit 1; }}'


def _boot(image: Image) -> Iterator[str]:
    sdk = f"apache/beam_python{image.python_version}_sdk:{image.beam_version}"
    yield (
        "# What starts a worker, from Beam's own image of the same versions.\n"
        f"COPY --from={sdk} /opt/apache/beam /opt/apache/beam"
    )
    release = release_of(image.beam_version)
    if release and release < (2, 30):
        yield "# Beam before 2.30 looks for pip there.\n" + _run(
            'test -e /usr/local/bin/pip || ln -s "$(command -v pip)" /usr/local/bin/pip'
        )


def _requirements(image: Image, *own: str) -> str:
    wanted: Iterable[str] = (*own, f"apache-beam[gcp]=={image.beam_version}", *image.packages)
    return " ".join(f"'{each}'" for each in wanted)


def _run(*commands: str) -> str:
    return "RUN " + " \\\n    && ".join(commands)
