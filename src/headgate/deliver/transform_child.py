"""What runs in the process for stylesheets of strangers. transform.py asks it, one request after
the other, and ends it where it takes too long.

    request   JSON {"stylesheet": base64, "item": text, "cpu_s": …}
    answer    JSON {"output": text, "is_html": …} or {"error": …, "line": …}, with "cpu_ns": …

What holds a stylesheet back, the later for where the earlier has a hole:
1. what it is: no DTD, no xsl:include, xsl:import or xsl:document, no extension namespace at all;
2. libxslt: access to files and network denied, depth of templates limited; libxml2: no entities,
   no network, no huge trees; a resolver that refuses everything;
3. the sandbox (headgate/sandbox), and no further file descriptor;
4. the parent: a limit on the wall clock and on the length of the answer.

Nothing of a request is left for the next: the log of errors, which lxml keeps for the process, is
cleared before each. Output is always made as UTF-8, whatever encoding a stylesheet names, as it
becomes text again here; other encodings would load code late, when nothing can be opened.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import resource
import time

from lxml import etree

from headgate.sandbox.enter import ConfinedProcess

XSLT = "{http://www.w3.org/1999/XSL/Transform}"
REFUSED_ELEMENTS = {f"{XSLT}include", f"{XSLT}import", f"{XSLT}document"}
REFUSED_NAMESPACES = (
    "http://exslt.org/",
    "http://icl.com/saxon",
    "http://saxon.sf.net",
    "http://xml.apache.org/x",
    "http://www.jclark.com/xt",
    "http://xmlsoft.org/",
    "http://codespeak.net/",
    "org.apache.x",
)
TEMPLATE_DEPTH_MAX = 500
STYLESHEETS_KEPT = 32
STACK_BYTES = 8 * 1024 * 1024


OUT_OF_MEMORY: dict[str, object] = {
    "error": "it takes more memory than allowed",
    "line": 0,
    "limit": True,
}


class Refused(Exception):
    """Why, and in which line of the stylesheet."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class RefuseAll(etree.Resolver):
    def resolve(self, system_url: str, public_id: str, context: object) -> None:  # type: ignore[override]  # noqa: ARG002
        raise Refused(f"nothing may be loaded, and so not '{system_url}'")


def limit_process(process: ConfinedProcess, memory_bytes: int) -> None:
    """After this nothing can be opened any more; so everything must have been imported."""
    process.limit_memory(memory_bytes)
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, STACK_BYTES))
    os.close(process.memory_file)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def peak_bytes() -> int:
    """The most memory that was in use; Linux counts it in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def parser() -> etree.XMLParser:
    found = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    found.resolvers.add(RefuseAll())
    return found


class Stylesheets:
    """Compiled stylesheets by the hash of their bytes.

    libxml2 answers a lack of memory with whatever error comes of it. An error of a process that
    ever had a quarter of its allowance is therefore taken for one, and ends this process.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.memory_alarm_bytes = peak_bytes() + memory_bytes // 4
        self._compiled: dict[bytes, tuple[etree.XSLT, str]] = {}

    def get(self, content: bytes) -> tuple[etree.XSLT, str]:
        digest = hashlib.sha256(content).digest()
        found = self._compiled.pop(digest, None) or compile_stylesheet(content)
        self._compiled[digest] = found
        if len(self._compiled) > STYLESHEETS_KEPT:
            del self._compiled[next(iter(self._compiled))]
        return found


def compile_stylesheet(content: bytes) -> tuple[etree.XSLT, str]:
    """The stylesheet, and the output method that it names."""
    root = etree.fromstring(content, parser())
    check(root)
    outputs = list(root.iter(f"{XSLT}output"))
    stated = [str(each.get("method", "")) for each in outputs]
    for each in outputs:
        each.set("encoding", "UTF-8")
    transform = etree.XSLT(root, access_control=etree.XSLTAccessControl.DENY_ALL)
    return transform, next(filter(None, stated), "")


def check(root: etree._Element) -> None:
    if root.getroottree().docinfo.internalDTD is not None:
        raise Refused("a stylesheet may not have a DTD", 1)
    for element in root.iter():
        line = int(element.sourceline or 0)
        if not isinstance(element.tag, str):
            if isinstance(element, etree._Entity):
                raise Refused("a stylesheet may not have entities", line)
            continue
        if element.tag in REFUSED_ELEMENTS:
            name = etree.QName(element).localname
            raise Refused(f"xsl:{name} is refused: a stylesheet is one file and writes none", line)
        for uri in element.nsmap.values():
            if uri.startswith(REFUSED_NAMESPACES):
                raise Refused(f"extensions are refused, and so the namespace '{uri}'", line)
        if any("extension-element-prefixes" in str(name) for name in element.attrib):
            raise Refused("extension elements are refused", line)


def transform(stylesheets: Stylesheets, request: dict[str, str]) -> dict[str, object]:
    compiled, method = stylesheets.get(base64.b64decode(request["stylesheet"]))
    result = compiled(etree.fromstring(request["item"].encode(), parser()))
    root: etree._Element | None = result.getroot()
    if not method:
        is_page = root is not None and str(root.tag).lower() == "html"
        method = "text" if root is None else "html" if is_page else "xml"
    return {"output": str(result), "is_html": method != "text"}


def answer(stylesheets: Stylesheets, request: dict[str, str]) -> dict[str, object]:
    etree.clear_error_log()
    try:
        return transform(stylesheets, request)
    except Refused as refused:
        return {"error": str(refused), "line": refused.line}
    except etree.LxmlError as error:
        if peak_bytes() > stylesheets.memory_alarm_bytes:
            return OUT_OF_MEMORY
        return {"error": reason_of(error), "line": line_of(error)}
    except MemoryError:
        return OUT_OF_MEMORY
    except (ValueError, RecursionError) as error:
        return {"error": str(error), "line": 0}


def reason_of(error: etree.LxmlError) -> str:
    """What went wrong first and what came of it; the entries that only name a place left out."""
    logged = [each.message for each in error.error_log if each.line <= 0]
    reasons = dict.fromkeys(each.strip().partition("\n")[0] for each in [*logged[:1], *logged[-1:]])
    return "; ".join(reasons) or str(error)


def line_of(error: etree.LxmlError) -> int:
    """libxslt logs the place and the reason as two entries, and only the place has a line."""
    stated = getattr(error, "lineno", None)
    lines = [each.line for each in error.error_log if each.line > 0]
    return int(stated or (lines[-1] if lines else 0))


def serve(process: ConfinedProcess, *, memory_bytes: int, output_max: int) -> None:
    stylesheets = Stylesheets(memory_bytes)
    process.send(json.dumps({"ready": True}).encode())
    while (content := process.receive()) is not None:
        request = json.loads(content)
        process.limit_cpu(float(request["cpu_s"]))
        began_ns = time.process_time_ns()
        found = answer(stylesheets, request)
        output = found.get("output")
        if isinstance(output, str) and len(output) > output_max:
            message = f"its output is longer than {output_max:,} characters"
            found = {"error": message, "line": 0, "limit": True}
        cpu_ns = time.process_time_ns() - began_ns
        process.send(json.dumps({**found, "cpu_ns": cpu_ns}).encode())


def main(process: ConfinedProcess) -> None:
    etree.XSLT.set_global_max_depth(TEMPLATE_DEPTH_MAX)
    # What is loaded late must be loaded now: codecs of documents, and libxslt's own tables.
    for codec in ("ascii", "latin-1", "utf-16", "cp1252", "idna"):
        "a".encode(codec)
    memory, output = (int(each) for each in process.arguments)
    limit_process(process, memory)
    serve(process, memory_bytes=memory, output_max=output)
