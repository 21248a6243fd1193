"""Exit codes that scripts can use.

0    done
1    a statement is wrong (what and where is on standard error)
2    the command was called wrongly, or a file cannot be read
3    the catalog refuses: unknown or taken name, cycle, in use, bad ticket, no plan
4    the catalog cannot be reached
"""

from __future__ import annotations

from headgate.model.errors import CatalogUnavailable, HeadgateError, LanguageError


def exit_code(error: HeadgateError) -> int:
    match error:
        case LanguageError():
            return 1
        case CatalogUnavailable():
            return 4
    return 3
