/** What somebody is writing at a place of a script: the name of a source, an attribute, a text …
 *  Completion offers what can stand there. */
import { fromNames, plainName, readText, statements, type Token } from "./language";

export type PlaceKind =
  "statement" | "definition" | "attribute" | "operator" | "text" | "words" | "none";

export interface CompletionPlace {
  kind: PlaceKind;
  /** Where what is completed begins, and what of it is there. */
  from: number;
  prefix: string;
  /** What the statement reads. */
  sources: string[];
  /** Of `operator`: behind which one. Of `text`: with which it is compared; missing: with the
   *  whole item. */
  attribute?: string;
  /** Of `text`: only a word of it is completed. */
  isWord?: boolean;
  /** Of `words`: what can stand there. */
  words?: readonly string[];
}

const OUTPUTS = ["mail", "webhook", "cloudevents", "file", "console"];
const AFTER: Record<string, readonly string[]> = {
  create: ["feed"],
  register: ["feed", "stream", "table", "documents", "operator"],
  drop: ["feed", "stream", "table"],
  is: ["present", "not present"],
  starts: ["with"],
  output: OUTPUTS,
  show: ["feeds", "sources", "subscriptions", "operators"],
};
const CLAUSES = ["from", "where", "join", "match", "output"];

export function placeAt(script: string, offset: number): CompletionPlace {
  const statement = statements(script).find((each) => each.at < offset && offset <= each.end);
  const isBehind = statement?.tokens.at(-1)?.text === ";" && offset === statement.end;
  if (!statement || isBehind) return place("statement", offset, wordBefore(script, offset), []);
  const sources = fromNames(statement.tokens);
  const before = statement.tokens.filter((token) => token.at < offset);
  const current = before.at(-1)!;
  const end = current.at + current.text.length;
  if (current.kind === "string" && (!current.isWhole || offset < end))
    return textPlace(script, offset, before, sources);
  const isWord = current.kind === "name" || current.kind === "keyword";
  if (isWord && offset <= end) {
    const prefix = script.slice(current.at, offset);
    return wordPlace(before.slice(0, -1), offset, prefix, sources);
  }
  return wordPlace(before, offset, "", sources);
}

function place(
  kind: PlaceKind,
  offset: number,
  prefix: string,
  sources: string[],
  more: Partial<CompletionPlace> = {},
): CompletionPlace {
  return { kind, from: offset - prefix.length, prefix, sources, ...more };
}

const wordBefore = (script: string, offset: number) =>
  /[\p{L}_]*$/u.exec(script.slice(0, offset))![0];

const lower = (token: Token | undefined) =>
  token?.kind === "keyword" || token?.kind === "sign" ? token.text.toLowerCase() : "";

/** In a text: its words, or the whole of it, are those of an attribute. */
function textPlace(
  script: string,
  offset: number,
  before: Token[],
  sources: string[],
): CompletionPlace {
  const current = before.at(-1)!;
  const written = readText(script.slice(current.at, offset));
  const rest = before.slice(0, -1);
  let isWord = false;
  for (const token of rest.reverse()) {
    const word = lower(token);
    if (["contains", "similar", "phrase"].includes(word)) isWord = true;
    if (["and", "or", "where", "[", "not"].includes(word)) break;
    if (["from", "as", "output", "apply", "feed"].includes(word))
      return place("none", offset, "", sources);
    if (token.kind === "name") return text(offset, written, sources, isWord, plainName(token.text));
  }
  return text(offset, written, sources, isWord);
}

function text(
  offset: number,
  written: string,
  sources: string[],
  isWord: boolean,
  attribute?: string,
): CompletionPlace {
  const prefix = isWord ? /[\p{L}\p{M}\p{N}]*$/u.exec(written)![0] : written;
  const more = attribute === undefined ? { isWord } : { isWord, attribute };
  return place("text", offset, prefix, sources, more);
}

/** At a word, or where one can begin. */
function wordPlace(
  before: Token[],
  offset: number,
  prefix: string,
  sources: string[],
): CompletionPlace {
  const last = before.at(-1);
  const word = lower(last);
  const at = (kind: PlaceKind, words?: readonly string[]) =>
    place(kind, offset, prefix, sources, words ? { words } : {});
  if (!last) return at("statement");
  const clause = before.map(lower).findLast((each) => CLAUSES.includes(each)) ?? "";
  const first = lower(before[0]);
  if (word in AFTER) return at("words", AFTER[word]);
  if (word === "feed" && ["drop", "explain"].includes(first)) return at("definition");
  if (word === "to" && first === "subscribe") return at("definition");
  if (first === "subscribe") return at("words", ["output", "every", "for"]);
  if (clause === "from") return fromPlace(last, before, at);
  if (clause === "where" || (clause === "join" && before.some((each) => lower(each) === "with")))
    return conditionPlace(last, before, at);
  if (clause === "join" && word === "on") return at("definition");
  if (clause === "join" && word === "join") return at("words", ["last"]);
  if (first === "create" && last.kind === "name") return at("words", ["from"]);
  return at("none");
}

type PlaceOf = (kind: PlaceKind, words?: readonly string[]) => CompletionPlace;

function fromPlace(last: Token, before: Token[], at: PlaceOf): CompletionPlace {
  if (["from", "|", "("].includes(lower(last))) return at("definition");
  if (lower(before[0]) === "register") return at("none");
  if (last.kind === "name" || last.kind === "variable" || lower(last) === ")")
    return at("words", ["where", "as", "join last", "match"]);
  return at("none");
}

function conditionPlace(last: Token, before: Token[], at: PlaceOf): CompletionPlace {
  const word = lower(last);
  const isBound = word === "and" && lower(before.at(-3)) === "between";
  if (isBound) return at("none");
  if (["where", "and", "or", "not", "[", "("].includes(word)) return at("attribute");
  if (last.kind === "name") return { ...at("operator"), attribute: plainName(last.text) };
  if (word === "contains") return at("words", ["phrase"]);
  const isDone =
    last.kind === "string" ||
    last.kind === "number" ||
    ["true", "false", "present", ")", "]"].includes(word);
  return isDone ? at("words", ["and", "or", "and not"]) : at("none");
}
