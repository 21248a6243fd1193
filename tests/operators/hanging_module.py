"""It never ends to be imported."""

import threading

threading.Event().wait()
