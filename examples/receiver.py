"""A receiver of webhooks: checks the signature of each call, and appends its items to a file.

python receiver.py HOST:PORT whsec_… received.jsonl
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TextIO

from standardwebhooks import Webhook, WebhookVerificationError


class Receiver(BaseHTTPRequestHandler):
    webhook: Webhook
    file: TextIO

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            self.webhook.verify(body, dict(self.headers))
        except WebhookVerificationError:
            self.send_response(401)
        else:
            for item in json.loads(body)["data"]["items"]:
                print(json.dumps(item["attributes"]), file=self.file, flush=True)
            self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """No line for each call."""


def main() -> None:
    address, secret, name = sys.argv[1:]
    host, _, port = address.rpartition(":")
    Receiver.webhook = Webhook(secret)
    with open(name, "a") as Receiver.file, HTTPServer((host, int(port)), Receiver) as server:
        print(f"receiving at http://{address}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
