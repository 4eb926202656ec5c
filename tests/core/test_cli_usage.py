"""The command itself: usage, exit codes, and how fast it starts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import accel

from airflow_accel_provider.cli import commands

START_SECONDS = 0.4
DOCS = Path(__file__).parents[2] / "docs"
NAMES = [command.__name__.rpartition(".")[2] for command in commands()]

WRONG = [
    [],
    ["chek"],
    ["check"],
    ["check", "--jsn", "-"],
    ["check", "no-such-folder/"],
    ["plan"],
    ["plan", "no-such-file.json"],
    ["jobs", "--regoin", "us-central1"],
    ["jobs", "--service", "dataprok"],
    ["reap"],
    ["reap", "--airflow-url", "airflow.example.com"],
    ["classify"],
    ["classify", "-", "--message", "x"],
    ["classify", "no-such-file.json"],
    ["classify", "--service", "dataprok", "--message", "x"],
    ["catalog", "--regoin", "us-central1"],
    ["catalog", "--project", "acme"],
    ["dockerfile"],
    ["dockerfile", "-"],
    ["dockerfile", "nvidia-l4", "--base"],
    ["emulator", "--wrold", "plenty"],
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    """Wrong usage exits with 2 and shows the usage of the command that was meant."""
    ended = accel(*arguments)
    assert (ended.code, ended.out) == (2, "")
    meant = f"accel {arguments[0]}" if arguments and arguments[0] in NAMES else "accel"
    assert ended.err.startswith(f"usage: {meant} ")


@pytest.mark.parametrize("name", NAMES)
def test_help_is_0(name: str) -> None:
    """Every command explains itself."""
    ended = accel(name, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"usage: accel {name}")


def test_no_command_is_unknown_to_wrong_usage() -> None:
    """Wrong usage of every command is tested above."""
    assert {arguments[0] for arguments in WRONG if arguments} >= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_is_documented(name: str) -> None:
    """The documentation names every flag of every command."""
    documented = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    flags = set(re.findall(r"--[a-z][a-z-]+", accel(name, "--help").out)) - {"--help"}
    assert flags
    assert [flag for flag in sorted(flags) if f"`{flag}" not in documented and f" {flag}" not in documented] == []


def test_it_starts_at_once() -> None:
    """A check of one request takes a process no longer than 0.4 seconds, without Airflow and without tables of text."""
    code = (
        "import sys; from airflow_accel_provider.cli import main; code = main(['check', '--json', '-']);"
        "print([name for name in ('airflow', 'rich', 'google', 'requests') if name in sys.modules and"
        " getattr(sys.modules[name], '__file__', None)], file=sys.stderr); sys.exit(code)"
    )
    ended = subprocess.run([sys.executable, "-c", code], input="{}\n", capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.strip()) == (1, "[]")

    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "airflow_accel_provider.cli", "check", "--json", "-"],
            input="{}\n",
            capture_output=True,
            text=True,
            check=False,
        )
        return time.perf_counter() - start

    # The best of some tries: a busy machine says nothing about the command.
    assert min(seconds() for _ in range(5)) < START_SECONDS


def test_a_reader_may_leave() -> None:
    """When whoever reads the answers stops reading, the command ends well and says nothing."""
    command = [sys.executable, "-m", "airflow_accel_provider.cli", "check", "--json", "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"{}\n" * 2)
    process.stdin.flush()
    first = process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(b"{}\n" * 1_000, timeout=60)
    assert b"operator-missing" in first
    assert (process.returncode, errors) == (0, b"")


def test_answers_come_at_once() -> None:
    """A program can keep the command open: each answer is there before the next request is sent."""
    command = [sys.executable, "-m", "airflow_accel_provider.cli", "check", "--json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        for _ in range(3):
            process.stdin.write(b"{}\n")
            process.stdin.flush()
            assert b"operator-missing" in process.stdout.readline()
