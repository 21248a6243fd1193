"""An OpenID provider: its endpoints and keys, the exchange of a code, and what proves an identity.

    issuer ──► /.well-known/openid-configuration ──► endpoints for people, codes and keys,
                                                     remembered for an hour

    code, verifier ──► token_endpoint ──► ID token ──► signature by a key of jwks_uri
                                                   ──► issuer, audience, expiry, nonce
                                                   ──► subject, verified address

Only asymmetric signatures count. `none` proves nothing; a symmetric one (HS256) would be made with
the secret of the client, or, if the public key of the provider was taken for a secret, by anybody.

The issuer is named by the operator, so its addresses are not checked as those of strangers are. But
what it answers is limited in size and time, redirects are not followed, and everything is by TLS;
except for a provider on this machine, for tests.

Authlib makes the requests of OAuth (PKCE, authentication of the client), joserfc reads the tokens.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from headgate.catalog.identities import TEXT_LENGTH_MAX, Identity
from headgate.model.errors import HeadgateError, InvalidValue

SCOPE = "openid email"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
ANSWER_BYTES_MAX = 1_000_000
TIMEOUT_S = 10.0
REMEMBERED_S, KEYS_AGAIN_S = 3_600.0, 60.0
LEEWAY_S = 60
AGE_MAX_S = 600
_METHODS = ("client_secret_basic", "client_secret_post")
_HERE = ("localhost", "127.0.0.1", "::1")


class SignInRefused(Exception):
    """Who somebody is was not proved; the reason is for the log, and has no secret in it."""


@dataclass(frozen=True, slots=True)
class OidcSettings:
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    domains: tuple[str, ...] = ()
    """Who has a verified address in one of these gets an account at the first sign-in."""

    def __post_init__(self) -> None:
        if not _is_safe(self.issuer, self.issuer):
            raise InvalidValue(
                f"'{self.issuer[:100]}' is no issuer: write its URL, https://login.example"
            )
        if not self.client_id or not self.client_secret:
            raise InvalidValue(
                "a provider needs the id and the secret of a client: --oidc-client, and "
                "HEADGATE_OIDC_SECRET"
            )


@dataclass(frozen=True, slots=True)
class ProviderEndpoints:
    authorization: str
    token: str
    keys: str
    method: str
    """How the client authenticates at the token endpoint."""


class OidcProvider:
    """Thread-safe. Its calls wait for the provider."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._endpoints: tuple[float, ProviderEndpoints] | None = None
        self._keys: tuple[float, KeySet] | None = None

    @property
    def name(self) -> str:
        """As people are shown it."""
        return urlsplit(self.settings.issuer).hostname or self.settings.issuer

    # --- the way out ------------------------------------------------------------------------------

    def authorization_url(self, redirect: str, *, state: str, nonce: str, verifier: str) -> str:
        endpoints = self.endpoints()
        with self._client(endpoints, redirect) as client:
            url, _ = client.create_authorization_url(
                endpoints.authorization, state=state, nonce=nonce, code_verifier=verifier
            )
        return str(url)

    def endpoints(self) -> ProviderEndpoints:
        with self._lock:
            known = self._endpoints
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        issuer = self.settings.issuer
        found = self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise SignInRefused("the configuration of the provider is that of another issuer")
        urls = [found.get(f"{name}_endpoint") for name in ("authorization", "token")]
        urls.append(found.get("jwks_uri"))
        if not all(isinstance(each, str) and _is_safe(each, issuer) for each in urls):
            raise SignInRefused("the configuration of the provider has no endpoints by https")
        offered = found.get("token_endpoint_auth_methods_supported") or _METHODS[:1]
        method = next((each for each in _METHODS if each in offered), _METHODS[0])
        endpoints = ProviderEndpoints(str(urls[0]), str(urls[1]), str(urls[2]), method)
        with self._lock:
            self._endpoints = (time.monotonic() + REMEMBERED_S, endpoints)
        return endpoints

    def _client(self, endpoints: ProviderEndpoints, redirect: str) -> Any:
        return OAuth2Client(
            self.settings.client_id,
            self.settings.client_secret,
            token_endpoint_auth_method=endpoints.method,
            scope=SCOPE,
            redirect_uri=redirect,
            code_challenge_method="S256",
            timeout=TIMEOUT_S,
            trust_env=False,
            follow_redirects=False,
        )

    # --- the way back -----------------------------------------------------------------------------

    def identity(self, code: str, redirect: str, *, nonce: str, verifier: str) -> Identity:
        """Who has signed in; `SignInRefused` if that is not proved."""
        endpoints = self.endpoints()
        try:
            with self._client(endpoints, redirect) as client:
                tokens = client.fetch_token(endpoints.token, code=code, code_verifier=verifier)
        except (AuthlibBaseError, httpx.HTTPError, ValueError) as error:
            raise SignInRefused(f"the code was not exchanged: {type(error).__name__}") from None
        text = tokens.get("id_token") if isinstance(tokens, Mapping) else None
        if not isinstance(text, str) or len(text) > ANSWER_BYTES_MAX:
            raise SignInRefused("the provider gave no ID token")
        return self._identity_in(self._claims(text), nonce)

    def _claims(self, text: str) -> dict[str, Any]:
        """What a token says, if a key of the provider has signed it."""
        try:
            return jwt.decode(text, self._key_set(), algorithms=ALGORITHMS).claims
        except InvalidKeyIdError:
            pass  # the provider may have new keys
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise SignInRefused(f"the ID token is not signed: {type(error).__name__}") from None
        try:
            keys = self._key_set(newer_than_s=KEYS_AGAIN_S)
            return jwt.decode(text, keys, algorithms=ALGORITHMS).claims
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise SignInRefused(f"the ID token is not signed: {type(error).__name__}") from None

    def _identity_in(self, claims: dict[str, Any], nonce: str) -> Identity:
        settings = self.settings
        registry = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_S,
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "value": settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            registry.validate(claims)
        except (JoseError, ValueError, TypeError) as error:
            claim = getattr(error, "claim", "")
            raise SignInRefused(
                f"the ID token is refused: {claim or type(error).__name__}"
            ) from None
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", settings.client_id) != settings.client_id:
            raise SignInRefused("the ID token is refused: azp")
        if several and "azp" not in claims:
            raise SignInRefused("the ID token is refused: aud")
        if claims["iat"] < time.time() - AGE_MAX_S:
            raise SignInRefused("the ID token is refused: iat")
        subject, address = claims["sub"], claims.get("email")
        if not isinstance(subject, str) or not 0 < len(subject) <= TEXT_LENGTH_MAX:
            raise SignInRefused("the ID token is refused: sub")
        is_verified = claims.get("email_verified") is True and isinstance(address, str)
        return Identity(settings.issuer, subject, str(address) if is_verified else "")

    def _key_set(self, newer_than_s: float = REMEMBERED_S) -> KeySet:
        """The keys of the provider, which were read at most so long ago."""
        with self._lock:
            known = self._keys
        if known is not None and time.monotonic() - known[0] < newer_than_s:
            return known[1]
        found = self._get(self.endpoints().keys)
        keys = KeySet.import_key_set(found)  # type: ignore[arg-type]
        with self._lock:
            self._keys = (time.monotonic(), keys)
        return keys

    def _get(self, url: str) -> dict[str, Any]:
        body = bytearray()
        try:
            with (
                httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client,
                client.stream("GET", url) as answer,
            ):
                answer.raise_for_status()
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > ANSWER_BYTES_MAX:
                        raise SignInRefused("an answer of the provider is too large")
            found = json.loads(bytes(body))
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            what = type(error).__name__
            raise SignInRefused(f"the provider cannot be reached: {what}") from None
        if not isinstance(found, dict):
            raise SignInRefused("the provider does not answer as it should")
        return found


def _is_safe(url: str, issuer: str) -> bool:
    """Whether it is by TLS, or as the issuer is on this machine."""
    try:
        parsed, base = urlsplit(url), urlsplit(issuer)
        is_plain = bool(parsed.hostname) and not parsed.username and not parsed.fragment
    except ValueError:
        return False
    is_here = parsed.scheme == "http" and {parsed.hostname, base.hostname} <= set(_HERE)
    return is_plain and url.isprintable() and (parsed.scheme == "https" or is_here)


def settings_of(
    issuer: str, client_id: str, client_secret: str, domains: str
) -> OidcSettings | None:
    """None where no issuer is named; domains are separated by commas."""
    if not issuer:
        if client_id or domains:
            raise HeadgateError("--oidc-client and --oidc-domains need an --oidc-issuer")
        return None
    found = [each.strip().lower() for each in domains.split(",") if each.strip()]
    return OidcSettings(issuer, client_id, client_secret, tuple(found))
