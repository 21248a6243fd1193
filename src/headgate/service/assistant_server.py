"""The tools of assistants by the Model Context Protocol: what `headgate mcp` serves.

    assistant ──► JSON-RPC on standard input and output ──► one tool ──► calls of the HTTP API

Errors are results, with place and hint, so that the assistant can correct itself. Feeds are
resources, too: `headgate://feeds/Rock` is the last items of Rock.

Streamable HTTP was left out: a process for each assistant needs no port, no sessions and no second
way to sign in, and `--url` reaches a service anywhere. `mcp` is an optional library; only this
module needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from headgate import __version__
from headgate.catalog.principals import Scope
from headgate.model.errors import HeadgateError
from headgate.service.assistant_client import ServiceClient, ServiceRefused, path_of
from headgate.service.assistant_tools import AssistantTool, described, tools_for
from headgate.service.untrusted_text import NOTICE, bounded, cleaned, fitting, marked

RESOURCE = "headgate://feeds/"
RESOURCES_MAX = 100
RESOURCE_ITEMS = 20
INSTRUCTIONS = (
    "Headgate holds streams of items (sources) and standing queries over them (feeds). "
    "list_feeds names them, read_feed and search show items, why and explain say how a feed "
    "decides; check and backtest try out a statement before create_feed. " + NOTICE
)
Context = ServerRequestContext[Any]


async def serve_stdio(api: ServiceClient, scopes: Iterable[Scope]) -> None:
    """Serve until the input ends."""
    server = AssistantServer(api, scopes).server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class AssistantServer:
    def __init__(self, api: ServiceClient, scopes: Iterable[Scope]) -> None:
        self._api, given = api, frozenset(scopes)
        self._tools = tools_for(given)
        reads = Scope.READ in given
        self.server: Server[Any] = Server(
            "headgate",
            version=__version__,
            title="Headgate",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources if reads else None,
            on_list_resource_templates=self._list_templates if reads else None,
            on_read_resource=self._read_resource if reads else None,
        )

    # --- tools ------------------------------------------------------------------------------------

    async def _list_tools(self, _: Context, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(each) for each in self._tools.values()])

    async def _call_tool(
        self, context: Context, asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(asked.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool '{cleaned(asked.name)}'")

        async def progress(elapsed_s: float, text: str) -> None:
            await context.session.report_progress(elapsed_s, None, cleaned(text))

        try:
            given = tool.arguments.model_validate(asked.arguments or {})
            found = await tool.call(self._api, given, progress)
        except ValidationError as error:
            places = [
                {"place": ".".join(map(str, each["loc"])), "message": each["msg"]}
                for each in error.errors()
            ]
            lines = [f"{each['place']}: {each['message']}".lstrip(": ") for each in places]
            return _refused("\n".join(lines), {"errors": places})
        except ServiceRefused as error:
            return _refused(described(error.problem), dict(error.problem))
        except HeadgateError as error:
            return _refused(str(error), {"detail": str(error)})
        return _result(marked(found) if tool.has_text_of_others else {"data": found})

    # --- resources --------------------------------------------------------------------------------

    async def _list_resources(self, _: Context, __: object) -> types.ListResourcesResult:
        page = await self._api.get("/v1/feeds", limit=RESOURCES_MAX)
        resources = [
            types.Resource(
                uri=RESOURCE + quote(each["name"], safe=""),
                name=cleaned(each["name"]),
                description="The last items of this feed.",
                mime_type="application/json",
            )
            for each in page["entries"]
        ]
        return types.ListResourcesResult(resources=resources)

    async def _list_templates(self, _: Context, __: object) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=RESOURCE + "{name}",
            name="feed",
            description="The last items of a feed or source.",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, _: Context, asked: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(asked.uri)
        name = unquote(uri.removeprefix(RESOURCE)) if uri.startswith(RESOURCE) else ""
        try:
            page = await self._api.get(path_of(name, "items"), limit=RESOURCE_ITEMS) if name else {}
        except ServiceRefused as error:
            raise MCPError(types.INVALID_PARAMS, described(error.problem)) from None
        if not page:
            raise MCPError(types.INVALID_PARAMS, f"a resource is {RESOURCE}<name of a feed>")
        newest = page["items"][::-1]
        text = json.dumps(marked({"items": fitting(newest)}), ensure_ascii=False)
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[contents])


def _tool(tool: AssistantTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.changes,
            destructive_hint=False,
            open_world_hint=tool.has_text_of_others or tool.changes,
        ),
    )


def _result(found: dict[str, Any]) -> types.CallToolResult:
    """Structured, and the same as text for clients that know no structured content."""
    text = types.TextContent(text=json.dumps(found, ensure_ascii=False))
    return types.CallToolResult(content=[text], structured_content=found)


def _refused(text: str, problem: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=cleaned(text))],
        structured_content=bounded(problem),
        is_error=True,
    )
