"""A module that imports a module which does not exist."""

import nowhere_to_be_found  # type: ignore[import-not-found]  # noqa: F401
