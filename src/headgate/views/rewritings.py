"""The rewritability graph as arrays ([Delta §2.1]): which views each view can be computed from.

    view v        its rewritings are view_start[v] … view_start[v + 1]
    rewriting r   reads the views members[member_start[r] : member_start[r + 1]], ascending

The source is not listed: every view can always be served by it. Cycles over several views are
possible, and the configuration's business.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Rewritings:
    view_count: int
    view_start: npt.NDArray[np.int64]
    member_start: npt.NDArray[np.int64]
    members: npt.NDArray[np.int32]
