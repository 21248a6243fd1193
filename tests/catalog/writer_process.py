"""A process of its own that writes to a catalog; the tests start it, wait for it, and kill it.

python writer_process.py URL NAME COUNT [BLOCK_AT]

applies COUNT scripts and writes a line after each that was acknowledged. With BLOCK_AT it stops
within the first script, before that statement, with all earlier rows written but not committed.
"""

import sys

from headgate.catalog import register, transaction
from headgate.catalog.catalog import Catalog
from headgate.language.parse import parse_script


def script(name: str, number: int) -> str:
    one, two = f"{name}{number}a", f"{name}{number}b"
    return f"""
        create feed {two} from {one} as $x where $x[title contains 'b'];
        register feed https://example.org/{one} as {one};
        subscribe to {two} output mail 'me@example.org';
    """


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def block_at(count: int) -> None:
    check, calls = register.check, 0

    def check_or_block(statement, definitions):
        nonlocal calls
        calls += 1
        if calls == count:
            say("blocked")
            sys.stdin.readline()
        return check(statement, definitions)

    register.check = check_or_block
    transaction._ROWS_MAX = 1


def main(url: str, name: str, count: str, blocked: str = "") -> None:
    if blocked:
        block_at(int(blocked))
    with Catalog.open(url) as catalog:
        say("ready")
        sys.stdin.readline()
        for number in range(int(count)):
            outcomes = catalog.apply(parse_script(script(name, number)))
            say(f"{number} {outcomes[-1].ticket}")


if __name__ == "__main__":
    main(*sys.argv[1:])
