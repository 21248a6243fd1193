"""What a browser has begun at an OpenID provider: state, nonce and verifier, sealed in its cookie.

    state      comes back in the URL: the provider answers what this browser has begun
    nonce      comes back in the ID token: it was made for this sign-in
    verifier   goes with the code: who has the code alone gets no token (PKCE)

The cookie is sealed by the key of the installation, so all processes of a service open it, and
nothing is stored for somebody who only begins. A state is used once by a process, and a code is
used once at the provider.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from headgate.catalog.sealed import Sealer
from headgate.model.errors import SealBroken
from headgate.service.oidc_provider import OidcProvider, SignInRefused

START_PATH = "/sign-in/oidc"
VALIDITY_S = 600
STATES_MAX = 10_000
_PLACE = ("cookie", "oidc", "sign-in")


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """What a browser has begun."""

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    until: float

    @classmethod
    def new(cls) -> BegunSignIn:
        made = [secrets.token_urlsafe(32) for _ in range(3)]
        return cls(made[0], made[1], made[2], time.time() + VALIDITY_S)


class SignInStates:
    """What the way there and the way back have in common. For one event loop."""

    def __init__(self, provider: OidcProvider, sealer: Sealer) -> None:
        self.provider, self._sealer = provider, sealer
        self._used: OrderedDict[str, float] = OrderedDict()

    def sealed(self, begun: BegunSignIn) -> str:
        fields = [begun.state, begun.nonce, begun.verifier, begun.until]
        sealed = self._sealer.seal(json.dumps(fields).encode(), *_PLACE)
        return base64.urlsafe_b64encode(sealed).decode()

    def opened(self, cookie: str, state: str) -> BegunSignIn:
        """What was begun by this browser, once; `SignInRefused` if it was not."""
        try:
            fields = json.loads(self._sealer.open(base64.urlsafe_b64decode(cookie), *_PLACE))
        except (SealBroken, ValueError):
            raise SignInRefused("the browser has not begun to sign in") from None
        begun = BegunSignIn(*fields)
        is_same = secrets.compare_digest(begun.state.encode(), state.encode("utf-8", "replace"))
        if not is_same or begun.until < time.time():
            raise SignInRefused("the state is another one, or too old")
        if begun.state in self._used:
            raise SignInRefused("the state was used before")
        self._used[begun.state] = begun.until
        while self._used and (
            len(self._used) > STATES_MAX or next(iter(self._used.values())) < time.time()
        ):
            self._used.popitem(last=False)
        return begun
