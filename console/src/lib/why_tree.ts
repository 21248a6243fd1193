/** The conditions of a feed with their answers for an item, and which of them decided. */

export type ConditionAnswer = "yes" | "no" | "open";

export interface ConditionNode {
  answer: ConditionAnswer;
  condition: string;
  /** The value of the item. */
  note?: string;
  parts?: ConditionNode[];
}

export interface WhyData {
  feed: string;
  source: string;
  answer: ConditionAnswer;
  branches: ConditionNode[];
  other_branches: number;
  windows: string[];
}

/** The conditions that made a branch what it is: of a conjunction that fails, the parts that fail;
 *  of a disjunction that holds, the parts that hold; otherwise all. */
export function deciding(node: ConditionNode): ConditionNode[] {
  const parts = node.parts ?? [];
  if (!parts.length) return [node];
  if (node.condition === "not") return [node];
  const same = parts.filter((part) => part.answer === node.answer);
  return (same.length ? same : parts).flatMap(deciding);
}

/** The branch that says most: one that holds, else one that is open, else the one that fails by the
 *  fewest conditions. */
export function tellingBranch(data: WhyData): ConditionNode | undefined {
  const rank = { yes: 0, open: 1, no: 2 };
  return [...data.branches].sort(
    (a, b) => rank[a.answer] - rank[b.answer] || deciding(a).length - deciding(b).length,
  )[0];
}

/** `not title contains 'ad'` for a negation, and a condition as it is. */
export function conditionText(node: ConditionNode): string {
  if (node.condition !== "not" || !node.parts?.length) return node.condition;
  const [part] = node.parts;
  const inner = part!.parts?.length
    ? `(${part!.parts.map(conditionText).join(joinWord(part!))})`
    : part!.condition;
  return `not ${inner}`;
}

const joinWord = (node: ConditionNode) => (node.condition === "one of" ? " or " : " and ");

export const noteOf = (node: ConditionNode): string =>
  node.note ?? (node.condition === "not" ? (node.parts?.[0]?.note ?? "") : "");
