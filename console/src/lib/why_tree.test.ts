import { describe, expect, it } from "vitest";
import { conditionText, deciding, noteOf, tellingBranch, type ConditionNode } from "./why_tree";

const atom = (answer: ConditionNode["answer"], condition: string, note = ""): ConditionNode => ({
  answer,
  condition,
  note,
});

describe("why", () => {
  const branch: ConditionNode = {
    answer: "no",
    condition: "News",
    parts: [
      atom("yes", "n > 5"),
      { answer: "no", condition: "one of", parts: [atom("no", "a = 1"), atom("no", "b = 2")] },
      {
        answer: "no",
        condition: "not",
        parts: [atom("yes", "title contains 'ad'", "title is 'an ad'")],
      },
    ],
  };

  it("names the conditions that decide", () => {
    expect(deciding(branch).map(conditionText)).toEqual([
      "a = 1",
      "b = 2",
      "not title contains 'ad'",
    ]);
    expect(noteOf(deciding(branch)[2]!)).toBe("title is 'an ad'");
  });

  it("takes all conditions of a branch that holds", () => {
    const holds: ConditionNode = {
      answer: "yes",
      condition: "News",
      parts: [
        atom("yes", "n > 5"),
        { answer: "yes", condition: "one of", parts: [atom("no", "x"), atom("yes", "y")] },
      ],
    };
    expect(deciding(holds).map(conditionText)).toEqual(["n > 5", "y"]);
  });

  it("prefers a branch that holds, and then one that nearly does", () => {
    const data = (branches: ConditionNode[]) => ({
      feed: "F",
      source: "S",
      answer: "no" as const,
      branches,
      other_branches: 0,
      windows: [],
    });
    const near: ConditionNode = { answer: "no", condition: "B", parts: [atom("no", "z")] };
    expect(tellingBranch(data([branch, near]))).toBe(near);
    expect(tellingBranch(data([near, atom("yes", "C")]))?.condition).toBe("C");
    expect(tellingBranch(data([]))).toBeUndefined();
  });
});
