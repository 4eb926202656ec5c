"""One emulator for all contract tests, and clients of both its identities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from emulators import Emulator, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.auth.transport.requests import AuthorizedSession

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
TIME_SCALE = 600.0


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return the session's emulator, in the world of plenty, with time running 600 times as fast."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=TIME_SCALE) as started:
        yield started


@pytest.fixture(autouse=True)
def _answers_keep_to_discovery(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test in which an answer departed from Google's discovery documents."""
    if "emulator" not in request.fixturenames:
        yield
        return
    emulator: Emulator = request.getfixturevalue("emulator")
    before = len(emulator.witness.problems)
    yield
    assert emulator.witness.problems[before:] == []


@pytest.fixture
def google_environment(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point Google's clients in this process at the emulator, as the account airflow@."""
    for name, value in emulator.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def session(emulator: Emulator) -> AuthorizedSession:
    """Return an HTTP session that carries tokens of airflow@."""
    return _session(emulator, "airflow")


@pytest.fixture
def pipeline_session(emulator: Emulator) -> AuthorizedSession:
    """Return an HTTP session that carries tokens of pipeline@."""
    return _session(emulator, "pipeline")


def _session(emulator: Emulator, identity: str) -> AuthorizedSession:
    from google.auth.transport.requests import AuthorizedSession
    from google.oauth2 import service_account

    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys[identity]), scopes=SCOPES)
    return AuthorizedSession(credentials)
