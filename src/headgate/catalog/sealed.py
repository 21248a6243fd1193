"""Sealed values: small secrets that the catalog must give back, and not only compare.

    sealed = version ‖ salt ‖ AES-256-GCM(key, nonce, value, place)
      1 byte  24 random bytes    key ‖ nonce = HKDF-SHA256(key of the installation, salt, purpose)

    place  = (table, column, primary key …): a value that is moved to another row does not open

Who has the catalog alone reads no value, and can neither change one nor put one in place of another
without notice. To put back an older value of the same place is not noticed: the catalog as a whole
can be put back, too.

Every value has a key and a nonce of its own, so there is no number of values after which a nonce
would be used twice. A value takes 41 bytes more than it has, and 40 µs.

Secrets of webhooks are derived and not sealed (model/receiver_secrets.py): we choose them, so they
need no row. What is sealed was chosen by others (secrets of hub subscriptions), or is random and
shown once (answers that are repeated under an idempotency key).

Rejected: one key and random nonces of 12 bytes (a bound of 2^32 values for one installation);
encryption by the database (its readers would have the key).
"""

from __future__ import annotations

import json
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from headgate.model.errors import SealBroken

VERSION = b"\x01"
VALUE_BYTES_MAX = 16_000_000
_SALT_BYTES, _KEY_BYTES, _NONCE_BYTES, _TAG_BYTES = 24, 32, 12, 16
OVERHEAD_BYTES = len(VERSION) + _SALT_BYTES + _TAG_BYTES


class Sealer:
    """Seals the values of one purpose. Thread-safe."""

    def __init__(self, key: bytes, purpose: str) -> None:
        """`key` is that of the installation (installation_key.py)."""
        assert key, "nothing is sealed without a key"
        self._key, self._purpose = key, f"headgate sealed: {purpose}".encode()

    def seal(self, value: bytes, *place: str) -> bytes:
        """The value as a row has it; `place` is table, column and primary key of the row."""
        assert len(value) <= VALUE_BYTES_MAX
        salt = secrets.token_bytes(_SALT_BYTES)
        cipher, nonce = self._cipher(salt)
        return VERSION + salt + cipher.encrypt(nonce, value, _bound_to(place))

    def open(self, sealed: bytes, *place: str) -> bytes:
        """What was sealed for this place; `SealBroken` for anything else."""
        body = sealed[len(VERSION) :]
        if len(sealed) < OVERHEAD_BYTES or len(sealed) > VALUE_BYTES_MAX + OVERHEAD_BYTES:
            raise SealBroken(f"a value of '{place[0]}' is not sealed: {len(sealed):,} bytes")
        if sealed[: len(VERSION)] != VERSION:
            raise SealBroken(
                f"a value of '{place[0]}' is sealed in a way that this version does not know: "
                "upgrade Headgate"
            )
        cipher, nonce = self._cipher(body[:_SALT_BYTES])
        try:
            return cipher.decrypt(nonce, body[_SALT_BYTES:], _bound_to(place))
        except InvalidTag:
            raise SealBroken(
                f"a value of '{place[0]}' cannot be opened: it was sealed with another key of the "
                "installation, or was changed; restore the key that belongs to this catalog "
                "(HEADGATE_WEBHOOK_KEY, or its key file), or the catalog"
            ) from None

    def _cipher(self, salt: bytes) -> tuple[AESGCM, bytes]:
        length = _KEY_BYTES + _NONCE_BYTES
        derived = HKDF(hashes.SHA256(), length, salt, self._purpose).derive(self._key)
        return AESGCM(derived[:_KEY_BYTES]), derived[_KEY_BYTES:]


def _bound_to(place: tuple[str, ...]) -> bytes:
    """Different for different places, whatever characters they have."""
    assert len(place) >= 3, "table, column, primary key"
    return json.dumps(place).encode()
