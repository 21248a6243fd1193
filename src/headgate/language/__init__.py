"""The language: from text to statements and back, and errors that say what to do."""

from headgate.language.check import check
from headgate.language.parse import parse, parse_script, read_script
from headgate.language.unparse import unparse

__all__ = ["check", "parse", "parse_script", "read_script", "unparse"]
