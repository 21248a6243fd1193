/** Where the nodes of a plan are drawn: sources at the left, the feed at the right. */
import dagre from "@dagrejs/dagre";
import type { Schemas } from "./api";

export type PlanNode = Schemas["PlanNode"];

export interface PlacedNode {
  node: PlanNode;
  title: string;
  lines: { text: string; sharedBy: number }[];
  more: number;
  x: number;
  y: number;
  width: number;
  height: number;
  isShared: boolean;
}

export interface PlacedEdge {
  from: number;
  to: number;
  path: string;
}

export interface PlanDrawing {
  width: number;
  height: number;
  nodes: PlacedNode[];
  edges: PlacedEdge[];
}

const TITLES: Record<string, string> = {
  source: "Source",
  feedref: "Feed",
  filter: "Filter",
  union: "Union",
  window: "Window",
  join: "Join",
  naturaljoin: "Table join",
  match: "Pattern",
  transform: "Transform",
};
const LINES_MAX = 4;
const LINE_CHARACTERS = 34;
const CHARACTER = 7;
const LINE = 19;
const PADDING = 12;

export const titleOf = (node: PlanNode): string => TITLES[node.op] ?? node.op;

const cut = (text: string) =>
  text.length > LINE_CHARACTERS ? `${text.slice(0, LINE_CHARACTERS - 1)}…` : text;

function linesOf(node: PlanNode): { text: string; sharedBy: number }[] {
  if (node.conditions.length)
    return node.conditions.map((each) => ({ text: each.text, sharedBy: each.shared_by }));
  if (node.op === "union") return [];
  return [{ text: node.text, sharedBy: 0 }];
}

export function layoutPlan(nodes: readonly PlanNode[]): PlanDrawing {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 44, marginx: 4, marginy: 4 });
  graph.setDefaultEdgeLabel(() => ({}));
  const made = nodes.map((node) => {
    const all = linesOf(node);
    const lines = all.slice(0, LINES_MAX).map((each) => ({ ...each, text: cut(each.text) }));
    const longest = Math.max(
      titleOf(node).length + (node.feed ? node.feed.length + 3 : 0),
      ...lines.map((each) => each.text.length + (each.sharedBy ? 10 : 0)),
    );
    const rows = 1 + lines.length + (all.length > LINES_MAX ? 1 : 0);
    const width = Math.min(360, Math.max(86, longest * CHARACTER + 2 * PADDING));
    const height = rows * LINE + 14;
    graph.setNode(String(node.id), { width, height });
    return { node, lines, more: all.length - lines.length, width, height };
  });
  for (const node of nodes)
    for (const input of node.inputs) graph.setEdge(String(input), String(node.id));
  dagre.layout(graph);
  const placed = made.map(({ node, lines, more, width, height }) => {
    const { x, y } = graph.node(String(node.id));
    return {
      node,
      title: titleOf(node),
      lines,
      more,
      x: x - width / 2,
      y: y - height / 2,
      width,
      height,
      isShared: node.conditions.length > 0 && node.conditions.every((c) => c.shared_by > 0),
    };
  });
  const byId = new Map(placed.map((each) => [each.node.id, each]));
  const edges = nodes.flatMap((node) =>
    node.inputs.map((input) => ({
      from: input,
      to: node.id,
      path: curve(byId.get(input)!, byId.get(node.id)!),
    })),
  );
  const whole = graph.graph();
  return { width: whole.width ?? 0, height: whole.height ?? 0, nodes: placed, edges };
}

function curve(from: PlacedNode, to: PlacedNode): string {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const bend = Math.max(16, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
