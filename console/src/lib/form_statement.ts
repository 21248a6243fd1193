/** A feed as a form has it, and the statement that it writes. */
import { writeName, writeText } from "./language";

export interface NumberCondition {
  attribute: string;
  type: string;
  relation: string;
  value: string;
}

export interface FeedForm {
  name: string;
  sources: string[];
  /** All of these words. */
  all: string;
  /** One of these, separated by commas. */
  any: string;
  /** None of these, separated by commas. */
  none: string;
  /** Where words are looked for; empty: everywhere. */
  attribute: string;
  conditions: NumberCondition[];
  output: "" | "mail" | "webhook";
  target: string;
}

export const emptyForm = (): FeedForm => ({
  name: "",
  sources: [],
  all: "",
  any: "",
  none: "",
  attribute: "",
  conditions: [],
  output: "",
  target: "",
});

const terms = (text: string) =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);

/** What is missing before there is a statement; empty: nothing. */
export function missingIn(form: FeedForm): string {
  if (!form.sources.length) return "Choose at least one source.";
  if (!form.name.trim()) return "Give the feed a name.";
  if (form.output && !form.target.trim()) return "Say where to deliver to.";
  return "";
}

/** The script: the feed, and the subscription if there is one. */
export function writeForm(form: FeedForm): string {
  const names = form.sources.map(writeName);
  const from = names.length === 1 ? names[0]! : `(${names.join(" | ")})`;
  const conditions = conditionsOf(form);
  const where = conditions.length ? `\n  where ${conditions.join("\n    and ")}` : "";
  const name = writeName(form.name.trim() || "New");
  const feed = `create feed ${name}\n  from ${from || "…"}${where};\n`;
  if (!form.output || !form.target.trim()) return feed;
  const target = writeText(form.target.trim());
  return `${feed}\nsubscribe to ${name} output ${form.output} ${target} for 30 days;\n`;
}

function conditionsOf(form: FeedForm): string[] {
  const field = form.attribute ? `${writeName(form.attribute)} ` : "";
  const contains = (text: string) => `${field}contains ${writeText(text)}`;
  const conditions: string[] = [];
  if (form.all.trim()) conditions.push(contains(form.all.trim()));
  const any = terms(form.any).map(contains);
  if (any.length === 1) conditions.push(any[0]!);
  if (any.length > 1) conditions.push(`(${any.join(" or ")})`);
  conditions.push(...terms(form.none).map((each) => `not ${contains(each)}`));
  for (const each of form.conditions) {
    const written = valueOf(each);
    if (each.attribute && written)
      conditions.push(`${writeName(each.attribute)} ${each.relation} ${written}`);
  }
  return conditions;
}

function valueOf({ type, value }: NumberCondition): string {
  const text = value.trim();
  if (!text) return "";
  if (type === "int" || type === "float") return Number.isFinite(Number(text)) ? text : "";
  if (type === "bool") return text === "true" ? "true" : "false";
  return writeText(text);
}

export const RELATIONS: Record<string, [string, string][]> = {
  int: [
    ["<", "less than"],
    ["<=", "at most"],
    ["=", "exactly"],
    [">=", "at least"],
    [">", "more than"],
  ],
  timestamp: [
    [">=", "from"],
    ["<", "before"],
  ],
  bool: [["=", "is"]],
  text: [
    ["=", "is"],
    ["!=", "is not"],
    ["starts with", "starts with"],
  ],
  link: [
    ["references", "leads to"],
    ["extends", "lies below"],
  ],
};
RELATIONS.float = RELATIONS.int!;

export const relationsOf = (type: string): [string, string][] => RELATIONS[type] ?? [["=", "is"]];
