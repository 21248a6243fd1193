"""`python -m headgate`, and what `spark-submit` is given: the `headgate` command."""

from headgate.cli.main import main

if __name__ == "__main__":
    main()
