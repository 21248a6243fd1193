"""Test calls to the receivers of subscriptions: signed with the key of the installation, to the
networks that this service may call, few at a time."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from fastapi import HTTPException

from headgate.catalog.catalog import Catalog
from headgate.deliver.output_webhook import WebhookOutput, WebhookSettings
from headgate.deliver.receiver_test import TestedReceiver, call_receiver
from headgate.deliver.records import PushSubscription, Transport
from headgate.model.addresses import AllowedNetworks
from headgate.model.errors import UnknownName

AT_ONCE = 4
STEP_S, TOTAL_S = 5.0, 10.0


class ReceiverTests:
    """Thread-safe."""

    def __init__(self, catalog: Catalog, allowed: AllowedNetworks) -> None:
        self._catalog, self._allowed = catalog, allowed
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._webhooks: WebhookOutput | None = None

    def close(self) -> None:
        if self._webhooks is not None:
            self._webhooks.close()

    def call(self, subscription_id: int) -> TestedReceiver:
        """`subscription_id` is one that the caller may manage."""
        output = self._catalog.outputs_of_ids([subscription_id]).get(subscription_id)
        if output is None:
            raise UnknownName(f"there is no active subscription {subscription_id}")
        if not self._places.acquire(blocking=False):
            raise HTTPException(503, "Too many tests at a time", {"retry-after": "5"})
        try:
            subscription = PushSubscription(
                id=subscription_id,
                version=output.version,
                feed=output.feed,
                kind=Transport(output.output_kind),
                target=output.target,
                salt=output.salt,
                secret_number=output.secret_number,
                rotated_at=output.rotated_at,
            )
            return call_receiver(self._opened(), subscription, datetime.now(UTC))
        finally:
            self._places.release()

    def _opened(self) -> WebhookOutput:
        with self._lock:
            if self._webhooks is None:
                key = self._catalog.installation_key()
                settings = WebhookSettings(key, self._allowed, STEP_S, TOTAL_S)
                self._webhooks = WebhookOutput(settings)
            return self._webhooks
