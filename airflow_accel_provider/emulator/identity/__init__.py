"""Who calls: the project's two service accounts, their keys, and the tokens that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.identity.accounts import Account, load_accounts, write_key_file
from airflow_accel_provider.emulator.identity.assertions import is_untimely, read_assertion
from airflow_accel_provider.emulator.identity.standing import DELETED, DISABLED, Standing
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


UNTIMELY = (
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
    "Check your iat and exp values in the JWT claim."
)
"""Source: answers that people quote in public reports, read 2026-11."""


class Identities:
    """The accounts ``airflow@PROJECT`` and ``pipeline@PROJECT`` and everything that proves to be one of them.

    Keys are generated at the first start and stay in ``directory``; only their ``token_uri`` follows the address.
    """

    def __init__(self, database: Database, directory: Path, *, project: str) -> None:
        self.directory = directory
        self.tokens = Tokens(database)
        self.standing = Standing(database)
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
        issued = self.tokens.principal(bearer)
        if issued:
            # A token outlives the key that it was asked for with, and not its account.
            return None if self._is(issued, DISABLED) else issued
        return self._good(read_assertion(bearer, self.accounts, audience=self._is_service, allow_scope=True))

    def assertion_principal(self, assertion: str) -> str | None:
        """Return the e-mail that signed an assertion meant for the token endpoint, or None."""
        audiences = TOKEN_AUDIENCES | {self._token_uri}
        return self._good(read_assertion(assertion, self.accounts, audience=lambda value: value in audiences))

    def why_refused(self, assertion: str) -> str:
        """Return the token endpoint's sentence about an assertion that it refuses."""
        audiences = TOKEN_AUDIENCES | {self._token_uri}
        signer = read_assertion(assertion, self.accounts, audience=lambda value: value in audiences)
        if signer and self._is(signer, DISABLED):
            return "Invalid grant: account not found"
        return UNTIMELY if is_untimely(assertion) else "Invalid JWT Signature."

    def may_impersonate(self, caller: str, target: str) -> bool:
        """Tell whether ``caller`` may create tokens for ``target``; both are e-mails."""
        pair = tuple(self.accounts[email].name for email in (caller, target) if email in self.accounts)
        return pair in GRANTS

    def _good(self, email: str | None) -> str | None:
        """Return an account that signed something, unless its key was deleted or it is disabled."""
        return None if email is None or self._is(email, DELETED) or self._is(email, DISABLED) else email

    def _is(self, email: str, standing: str) -> bool:
        return email in self.accounts and self.standing.of(self.accounts[email].name) == standing

    def _is_service(self, audience: str) -> bool:
        own = self._token_uri.removesuffix("/token")
        is_google = audience.startswith("https://") and audience.rstrip("/").endswith(".googleapis.com")
        return is_google or (bool(own) and audience.rstrip("/") == own)
