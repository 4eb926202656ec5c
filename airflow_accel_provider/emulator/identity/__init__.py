"""Who calls: the project's two service accounts, their keys, and the tokens that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.identity.accounts import Account, load_accounts, write_key_file
from airflow_accel_provider.emulator.identity.assertions import read_assertion
from airflow_accel_provider.emulator.identity.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_accel_provider.emulator.database import Database

NAMES = ("airflow", "pipeline")

GRANTS: frozenset[tuple[str, str]] = frozenset({("airflow", "pipeline"), ("airflow", "airflow")})
"""Who holds Service Account Token Creator on whom: the first may impersonate the second."""


TOKEN_AUDIENCES = frozenset(
    {
        "https://oauth2.googleapis.com/token",
        "https://www.googleapis.com/oauth2/v4/token",
        "https://accounts.google.com/o/oauth2/token",
    }
)
"""What an assertion for the token endpoint may be meant for, besides the address in the key file.

google-auth always names the first, whatever ``token_uri`` says.
"""


class Identities:
    """The accounts ``airflow@PROJECT`` and ``pipeline@PROJECT`` and everything that proves to be one of them.

    Keys are generated at the first start and stay in ``directory``; only their ``token_uri`` follows the address.
    """

    def __init__(self, database: Database, directory: Path, *, project: str) -> None:
        self.directory = directory
        self.tokens = Tokens(database)
        self.accounts: Mapping[str, Account] = {
            account.email: account for account in load_accounts(directory, NAMES, project=project)
        }
        self._token_uri = ""

    def write_keys(self, *, token_uri: str) -> None:
        """Write the key files, with the address of the token endpoint in them."""
        self._token_uri = token_uri
        for account in self.accounts.values():
            write_key_file(account, token_uri=token_uri)

    def key_files(self) -> dict[str, Path]:
        """Return the key file of each account by its short name."""
        return {account.name: account.key_file for account in self.accounts.values()}

    def email(self, name: str) -> str:
        """Return the e-mail of an account by its short name (``airflow`` or ``pipeline``)."""
        return next(account.email for account in self.accounts.values() if account.name == name)

    def principal(self, bearer: str) -> str | None:
        """Return the e-mail that a bearer token stands for, or None when it stands for nobody.

        A bearer is an access token issued here, or a JWT that an account signed for itself, as typed clients send.
        """
        return self.tokens.principal(bearer) or read_assertion(
            bearer, self.accounts, audience=self._is_service, allow_scope=True
        )

    def assertion_principal(self, assertion: str) -> str | None:
        """Return the e-mail that signed an assertion meant for the token endpoint, or None."""
        audiences = TOKEN_AUDIENCES | {self._token_uri}
        return read_assertion(assertion, self.accounts, audience=lambda value: value in audiences)

    def may_impersonate(self, caller: str, target: str) -> bool:
        """Tell whether ``caller`` may create tokens for ``target``; both are e-mails."""
        pair = tuple(self.accounts[email].name for email in (caller, target) if email in self.accounts)
        return pair in GRANTS

    def _is_service(self, audience: str) -> bool:
        own = self._token_uri.removesuffix("/token")
        is_google = audience.startswith("https://") and audience.rstrip("/").endswith(".googleapis.com")
        return is_google or (bool(own) and audience.rstrip("/") == own)
