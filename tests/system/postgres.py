"""A PostgreSQL of one's own, from Debian's package, on loopback and for as long as a block."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.stack import free_ports
from demo.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = "airflow"
PACKAGES = Path("/usr/lib/postgresql")


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server with an empty database in a new folder; yield the address that Airflow takes."""
    programs, (port,) = server_programs(), free_ports(1)
    # Not below pytest's own folder, which nobody but its user may enter: root has to run a server as somebody else.
    directory = Path(tempfile.mkdtemp(prefix="accel-postgres-"))
    password = secrets.token_hex(16)
    try:
        (directory / "password").touch(mode=0o600)
        (directory / "password").write_text(password)
        for path in (directory, directory / "password"):
            os.chown(path, *owner())
        make_database(programs, directory)
        with serving(programs, directory, port):
            yield f"postgresql+psycopg2://{USER}:{password}@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(directory)


def server_programs() -> Path:
    """Return the folder of the newest server's programs; raise with what to install if there is none."""
    folders = [path.parent for path in PACKAGES.glob("*/bin/initdb")]
    if not folders:
        raise RuntimeError("These tests need a PostgreSQL server. Install Debian's package: apt-get install postgresql")
    return max(folders, key=lambda path: int(path.parent.name))


def make_database(programs: Path, directory: Path) -> None:
    said = [f"--pgdata={directory / 'data'}", f"--username={USER}", f"--pwfile={directory / 'password'}"]
    command = [str(programs / "initdb"), *said, "--auth=scram-sha-256", "--encoding=UTF8", "--no-sync"]
    subprocess.run(command, check=True, capture_output=True, cwd=directory, **identity())


@contextmanager
def serving(programs: Path, directory: Path, port: int) -> Iterator[None]:
    command = [str(programs / "postgres"), "-D", str(directory / "data"), "-k", str(directory), "-p", str(port)]
    # What is lost in a crash of the machine need not be kept.
    settings = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "synchronous_commit=off"]
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, *settings], stdout=log, stderr=log, cwd=directory, start_new_session=True, **identity()
        )
    try:
        asked = [str(programs / "pg_isready"), "--quiet", "--host=127.0.0.1", f"--port={port}"]
        wait_for("PostgreSQL to answer", lambda: subprocess.run(asked, check=False).returncode == 0, seconds=60)
        yield
    finally:
        # Asked like this it ends its sessions, and then itself.
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)


def owner() -> tuple[int, int]:
    """Return whose the server is: it refuses to be root's."""
    if os.getuid():
        return os.getuid(), os.getgid()
    entry = pwd.getpwnam("postgres")
    return entry.pw_uid, entry.pw_gid


def identity() -> dict[str, Any]:
    """Return the arguments that start a program as that user."""
    user, group = owner()
    return {} if os.getuid() else {"user": user, "group": group, "extra_groups": []}
