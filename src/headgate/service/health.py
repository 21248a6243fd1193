"""`/livez`: the process answers. `/readyz`: it can do its work. Neither needs a token, and neither
says why not: that is in the log of the service, and `headgate status` says it.

    catalog    it answers
    log        it can be read
    run        it gives signs of life. One that was stopped, or never started, is reported, and the
               service is ready; one that was killed or has ended by itself makes it not ready
    delivery   it is not more than LAG_S behind, while there is a run
"""

from __future__ import annotations

import logging

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from headgate.api.operating import LAG_S, OperatingProblem, problems_of
from headgate.model.errors import HeadgateError
from headgate.pipeline.folder_status import FolderStatus
from headgate.pipeline.heartbeat import RunState
from headgate.service.caller import service_of

log = logging.getLogger("headgate.service")
router = APIRouter(tags=["health"])


class Health(BaseModel):
    ok: bool
    catalog: bool | None = None
    log: bool | None = None
    run: bool | None = None
    delivery: bool | None = None


@router.get("/livez", response_model_exclude_none=True)
def is_alive() -> Health:
    return Health(ok=True)


@router.get("/readyz", response_model=Health, responses={503: {"model": Health}})
def is_ready(request: Request) -> JSONResponse:
    service = service_of(request)
    checks = {"catalog": service.headgate.catalog.version, "log": service.log.check}
    found: dict[str, bool] = {}
    for name, check in checks.items():
        try:
            check()
            found[name] = True
        except HeadgateError as error:
            log.warning("not ready: %s: %s", name, error)
            found[name] = False
    is_ready, status = all(found.values()), service.watch.look()
    problems = [each for each in problems_of(status) if each.kind == "run"]
    found["run"] = status.run_state is RunState.RUNNING
    found["delivery"] = not (found["run"] and is_delivery_stuck(status))
    if not found["delivery"]:
        problems.append(OperatingProblem("delivery", "delivery stands still"))
    for problem in problems:
        log.warning("not ready: %s", problem.text)
    ok = is_ready and not problems
    return JSONResponse({"ok": ok, **found}, status_code=200 if ok else 503)


def is_delivery_stuck(status: FolderStatus) -> bool:
    return status.delivery is None or status.delivery.behind_s > LAG_S
