"""A small OpenID provider on loopback: discovery, codes with PKCE, tokens that are really signed.
What it says can be changed by tests, which play a provider or a stranger that lies."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

CLIENT, SECRET = "headgate", "the secret of the client"


class Provider:
    def __init__(self) -> None:
        self.issuer = ""
        self.key: RSAKey | ECKey = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.published: list[Any] = [self.key]
        self.algorithm = "RS256"
        self.claims: dict[str, Any] = {
            "sub": "s-1",
            "email": "ada@a.example",
            "email_verified": True,
        }
        self.configuration: dict[str, Any] = {}
        self.make_token: Callable[[dict[str, Any]], str] = self.signed
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []

    def signed(self, claims: dict[str, Any]) -> str:
        header = {"alg": self.algorithm, "kid": str(self.key.kid)}
        return jwt.encode(header, claims, self.key, algorithms=[self.algorithm])

    def configured(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **self.configuration,
        }

    def authorize(self, url: str) -> str:
        """Somebody signs in at the URL to which the service has sent the browser; where it is sent
        back to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT)
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        back = urlencode({"code": code, "state": query["state"]})
        return f"{query['redirect_uri']}?{back}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        wanted = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        begun = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if authorization != f"Basic {wanted}" or begun is None:
            return 400, {"error": "invalid_grant"}
        if begun["code_challenge"] != challenge or begun["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": begun["nonce"],
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        return 200, {
            "access_token": "x",
            "token_type": "Bearer",
            "id_token": self.make_token(claims),
        }


@contextmanager
def openid_provider() -> Iterator[Provider]:
    found = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            if self.path == "/keys":
                self._answer(200, KeySet(found.published).as_dict(private=False))
            elif self.path == "/.well-known/openid-configuration":
                self._answer(200, found.configured())
            else:
                self._answer(404, {})

        def do_POST(self) -> None:
            found.asked.append(self.path)
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._answer(*found.token(form, self.headers.get("authorization", "")))

        def _answer(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
