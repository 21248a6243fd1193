"""The console: the pages that people open, built from `console/` into `console_files/`.

    GET /, /river, /feeds/NAME, …    one document for all addresses, for who has a session
    GET /console/FILE                its scripts, styles and icon, compressed once

The document carries no content: its script asks `/session` who is there, and reads everything by
the API with a token (sign_in.py). Its policy lets it load nothing but its own files, and pictures;
styles that scripts make (of the editor, and of the frame in which the text of an item is shown)
carry a nonce, which is another one in every answer. No script is inline, and none is evaluated.

Built files have hashes in their names and are kept by browsers for good. Where the console was not
built, the start page says how.
"""

from __future__ import annotations

import gzip
import mimetypes
import secrets
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from headgate.service.receivers import not_valid, page
from headgate.service.sign_in import PAGES, AnySession

FILES = Path(__file__).parent / "console_files"
NONCE = "%NONCE%"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
    "img-src 'self' data: https: http:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
FOR_GOOD = "public, max-age=31536000, immutable"
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class BuiltFile:
    media_type: str
    content: bytes
    compressed: bytes


@cache
def built_files() -> dict[str, BuiltFile]:
    """The files of the console by their path; none if it was not built."""
    found = {}
    for path in sorted(FILES.rglob("*")):
        if path.is_file():
            media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            content = path.read_bytes()
            name = path.relative_to(FILES).as_posix()
            found[name] = BuiltFile(media_type, content, gzip.compress(content, mtime=0))
    return found


async def show(request: Request, session: AnySession) -> Response:
    """The document of a page."""
    if session is None:
        here = request.scope["raw_path"].decode("latin-1")
        if request.url.query:
            here += f"?{request.url.query}"
        return RedirectResponse("/sign-in" if here == "/" else f"/sign-in?next={quote(here)}", 303)
    document = built_files().get("index.html")
    if document is None:
        text = (
            f"You are signed in as {session.account.name}. The console is not part of this "
            "installation: run scripts/build_console in the source tree. The HTTP API is there."
        )
        return page("Headgate", text, "Sign out", action="/sign-out")
    nonce = secrets.token_urlsafe(16)
    return HTMLResponse(
        document.content.decode().replace(NONCE, nonce),
        headers={"content-security-policy": POLICY.format(nonce=nonce)},
    )


router.add_api_route("/", show)
for each in PAGES:
    router.add_api_route(f"/{each}", show)
    router.add_api_route(f"/{each}/{{rest:path}}", show)


@router.get("/console/{name:path}")
async def built_file(name: str, request: Request) -> Response:
    """A file that the document names. It has no secrets, so no session is needed."""
    found = built_files().get(name)
    if found is None or name == "index.html":
        return not_valid()
    headers = {
        "cache-control": FOR_GOOD if name.startswith("assets/") else "public, max-age=3600",
        "vary": "accept-encoding",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(found.compressed, headers=headers, media_type=found.media_type)
    return Response(found.content, headers=headers, media_type=found.media_type)
