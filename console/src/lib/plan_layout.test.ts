import { describe, expect, it } from "vitest";
import { layoutPlan, type PlanNode } from "./plan_layout";

const node = (id: number, op: string, inputs: number[], conditions: [string, number][] = []) =>
  ({
    id,
    op,
    text: `${op} ${id}`,
    inputs,
    feed: "",
    conditions: conditions.map(([text, shared_by]) => ({ text, shared_by })),
  }) satisfies PlanNode;

describe("the drawing of a plan", () => {
  const drawing = layoutPlan([
    node(0, "source", []),
    node(1, "source", []),
    node(2, "filter", [0], [["title contains 'rock'", 41]]),
    node(
      3,
      "filter",
      [1],
      [
        ["n > 5", 2],
        ["n < 9", 0],
      ],
    ),
    node(4, "union", [2, 3]),
  ]);

  it("goes from left to right", () => {
    for (const { from, to } of drawing.edges) {
      const [left, right] = [from, to].map((id) => drawing.nodes[id]!);
      expect(left!.x + left!.width).toBeLessThanOrEqual(right!.x);
    }
    expect(drawing.edges).toHaveLength(4);
  });

  it("lets no two nodes overlap", () => {
    for (const a of drawing.nodes)
      for (const b of drawing.nodes)
        if (a.node.id < b.node.id)
          expect(
            a.x + a.width <= b.x ||
              b.x + b.width <= a.x ||
              a.y + a.height <= b.y ||
              b.y + b.height <= a.y,
          ).toBe(true);
  });

  it("marks a filter whose conditions are all shared", () => {
    expect(drawing.nodes.map((each) => each.isShared)).toEqual([false, false, true, false, false]);
  });
});
