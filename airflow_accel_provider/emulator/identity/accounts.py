"""Service accounts and their key files, in Google's format."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

KEY_BITS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One service account and its only key."""

    name: str
    email: str
    project: str
    key: RSAPrivateKey
    key_file: Path

    @property
    def public_key(self) -> RSAPublicKey:
        """Return what verifies this account's signatures."""
        return self.key.public_key()

    @property
    def key_id(self) -> str:
        """Return the key's id, 40 hexadecimal digits that follow from the key."""
        return self._fingerprint().hex()[:40]

    @property
    def unique_id(self) -> str:
        """Return the account's number, 21 digits that follow from the key."""
        return f"1{int.from_bytes(self._fingerprint()) % 10**20:020d}"

    def _fingerprint(self) -> bytes:
        digest = hashes.Hash(hashes.SHA256())
        digest.update(
            self.public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return digest.finalize()


def load_accounts(directory: Path, names: Iterable[str], *, project: str) -> Iterator[Account]:
    """Yield the accounts of a project with their stored keys, new ones where there is none yet."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        email = f"{name}@{project}.iam.gserviceaccount.com"
        # Another project in the same state directory has accounts, and thus keys, of its own.
        pem_file = directory / f"{email}.pem"
        yield Account(
            name=name, email=email, project=project, key=_load_key(pem_file), key_file=directory / f"{name}.json"
        )


def _load_key(pem_file: Path) -> RSAPrivateKey:
    if not pem_file.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
        write_private(pem_file, _pem(key))
        return key
    loaded = serialization.load_pem_private_key(pem_file.read_bytes(), password=None)
    if not isinstance(loaded, RSAPrivateKey):
        raise TypeError(f"{pem_file} does not hold an RSA key; remove it to have a new one made.")
    return loaded


def _pem(key: RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def write_key_file(account: Account, *, token_uri: str) -> None:
    """Write an account's key file as the Cloud console would hand it out, but for its ``token_uri``."""
    certificates = "https://www.googleapis.com"
    content = {
        "type": "service_account",
        "project_id": account.project,
        "private_key_id": account.key_id,
        "private_key": _pem(account.key),
        "client_email": account.email,
        "client_id": account.unique_id,
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": token_uri,
        "auth_provider_x509_cert_url": f"{certificates}/oauth2/v1/certs",
        "client_x509_cert_url": f"{certificates}/robot/v1/metadata/x509/{quote(account.email, safe='')}",
        "universe_domain": "googleapis.com",
    }
    write_private(account.key_file, json.dumps(content, indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable by its owner only from the first byte."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
