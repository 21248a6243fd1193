/** What can stand at a place of a script, with how often it occurs. */
import type { Completion } from "@codemirror/autocomplete";
import { placeAt, type CompletionPlace } from "./completion_place";
import type { CompletionChoice } from "./editor";
import { attributesOf, findDefinitions, NAMES_MAX, valuesLike, type KnownValue } from "./known";
import { writeName, writeText } from "./language";
import { rateText, shareText } from "./frequency";

const STATEMENTS: [string, string, string][] = [
  ["create feed", "a standing query", "create feed "],
  ["register feed", "a feed of the web", "register feed "],
  ["register stream", "posted events", "register stream "],
  ["subscribe to", "have it delivered", "subscribe to "],
  ["drop feed", "", "drop feed "],
];
const NUMBERS = ["<", "<=", "=", ">=", ">", "between", "in ("];
const OPERATORS: Record<string, string[]> = {
  int: NUMBERS,
  float: NUMBERS,
  timestamp: [">", "<", "between", ".weekday in (", ".hour <"],
  bool: ["= true", "= false"],
  link: ["references", "extends", "shares-link", "="],
  text: ["contains", "contains phrase", "=", "in (", "starts with", "similar", "matches"],
};

export async function complete(script: string, offset: number): Promise<CompletionChoice | null> {
  const place = placeAt(script, offset);
  const options = await optionsAt(place).catch(() => []);
  if (!options.length) return null;
  const isText = place.kind === "text";
  // Where there may be more than these, they are looked for again when another letter is typed.
  const isPart =
    (isText && place.isWord) || (place.kind === "definition" && options.length >= NAMES_MAX);
  const validFor = isText ? /^[^'"]*$/ : /^[\p{L}\p{N}_`]*$/u;
  return { from: place.from, options, ...(isPart ? {} : { validFor }) };
}

async function optionsAt(place: CompletionPlace): Promise<Completion[]> {
  switch (place.kind) {
    case "statement":
      return STATEMENTS.map(([label, detail, apply]) => ({ label, detail, apply }));
    case "words":
      return (place.words ?? []).map((label) => ({ label, apply: `${label} ` }));
    case "definition":
      return definitions(place.prefix);
    case "attribute":
      return attributes(place.sources);
    case "operator":
      return operators(place);
    case "text":
      return texts(place);
  }
  return [];
}

async function definitions(prefix: string): Promise<Completion[]> {
  const found = await findDefinitions(prefix);
  return found.map((each) => ({
    label: each.name,
    apply: writeName(each.name),
    detail: [each.isSource ? "source" : "feed", rateText({ perDay: each.perDay })]
      .filter(Boolean)
      .join(" · "),
    boost: Math.min(50, Math.log2(1 + (each.perDay ?? 0)) * 3),
  }));
}

async function attributes(sources: string[]): Promise<Completion[]> {
  const found = await attributesOf(sources);
  const named = found.map((each) => ({
    label: each.name,
    apply: `${writeName(each.name)} `,
    detail: `${each.type} · in ${shareText(each.share)} of items`,
    boost: each.share * 10,
  }));
  const words = ["contains", "not"].map((label) => ({ label, apply: `${label} `, boost: -20 }));
  return [...named, ...words];
}

/** Operators for the type of the attribute before them. */
async function operators(place: CompletionPlace): Promise<Completion[]> {
  const known = await attributesOf(place.sources);
  const type = known.find((each) => each.name === place.attribute)?.type ?? "text";
  const all = [...(OPERATORS[type] ?? OPERATORS.text!), "is present"];
  return all.map((label, index) => ({ label, apply: `${label} `, boost: -index }));
}

async function texts(place: CompletionPlace): Promise<Completion[]> {
  const { sources, attribute, prefix, isWord = false } = place;
  const found = await valuesLike(sources, attribute, prefix, isWord);
  const most = Math.max(...found.map(weight), 1e-9);
  return found.map((each) => ({
    label: each.text,
    apply: writeText(each.text).slice(1, -1),
    detail: rateText(each),
    boost: Math.round((weight(each) / most) * 90),
  }));
}

const weight = (value: KnownValue) => value.perDay ?? value.share;
