/** Sources in words: how often they publish, since when they are silent, and the statements that
 *  register them. */
import type { Schemas } from "./api";
import { count, duration } from "./format";

export type SourceOverview = Schemas["SourceOverview"];
export type SourceState = SourceOverview["state"];
export type AttributeType = Schemas["AttributeOfSource"]["type"];

export const STATES: Record<SourceState, { text: string; tone: string }> = {
  broken: { text: "Broken", tone: "bad" },
  quiet: { text: "Quiet", tone: "warn" },
  new: { text: "No items yet", tone: "" },
  fine: { text: "Fine", tone: "good" },
};

export const KINDS: Record<SourceOverview["kind"], string> = {
  rss: "Web feed",
  materialized: "Transformed feed",
  stream: "Events",
  table: "Table",
  documents: "Documents",
  feed: "Feed",
  operator: "Operator",
};

/** The page of a source. `/sources/new` makes one, so a source of that name says more. */
export function sourceAddress(name: string, tab = ""): string {
  const shown = tab || (name === "new" ? "items" : "");
  return `/sources/${encodeURIComponent(name)}${shown ? `?tab=${shown}` : ""}`;
}

const PER: [string, number][] = [
  ["a second", 86_400],
  ["a minute", 1_440],
  ["an hour", 24],
  ["a day", 1],
  ["a week", 1 / 7],
  ["a month", 1 / 30],
];
const HIGH_ENOUGH = 1_000;

/** `12 a day`, `3 a week`: in the unit in which people would count it. */
export function rateText(perDay: number | null | undefined): string {
  if (perDay == null) return "";
  const fits = PER.filter(([, length]) => perDay / length >= 1);
  const [unit, length] =
    perDay >= HIGH_ENOUGH
      ? (fits[0] ?? PER.at(-1)!)
      : (fits.find(([, length]) => length <= 1) ?? PER.at(-1)!);
  const value = perDay / length;
  if (value < 0.5) return "less than 1 a month";
  return `${count(value < 10 && value % 1 >= 0.05 ? Math.round(value * 10) / 10 : Math.round(value))} ${unit}`;
}

/** `3 days`, `5 hours`: one unit, for silences and outages. */
export function roughTime(seconds: number): string {
  const units: [string, number][] = [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
  ];
  for (const [name, length] of units)
    if (seconds >= 2 * length || (seconds >= length && name !== "day")) {
      const value = Math.floor(seconds / length);
      return `${count(value)} ${name}${value === 1 ? "" : "s"}`;
    }
  return duration(Math.max(1, Math.round(seconds)));
}

/** What a person wants to know first about a source, in one line. */
export function summary(source: SourceOverview, asOf: Date): string {
  if (source.state === "broken") return firstLine(reason(source.problem, source.url));
  if (source.state === "new") return "Nothing has come from it yet.";
  if (source.state === "quiet" && source.last_arrived) {
    const silent = (asOf.getTime() - new Date(source.last_arrived).getTime()) / 1_000;
    const usual = rateText(source.per_day);
    return `Quiet for ${roughTime(silent)}${usual ? `, usually ${usual}` : ""}`;
  }
  return source.url ? shownUrl(source.url) : KINDS[source.kind];
}

/** What is wrong, without the address that every error of a fetch begins with. */
export function reason(problem: string | null | undefined, url: string | null | undefined): string {
  const text = problem || "It cannot be read.";
  return url && text.startsWith(`${url}: `) ? text.slice(url.length + 2) : text;
}

export const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";

/** A URL without what everybody knows, for narrow places. */
export const shownUrl = (url: string): string => url.replace(/^https?:\/\/(www\.)?/, "");

/** The labels of stretches of time: `14:00`, or `17 Nov, 12:00` of long ones. */
export function stretchLabels(since: string, widthS: number, many: number): string[] {
  const isShort = widthS < 10_800;
  const format = new Intl.DateTimeFormat(
    undefined,
    isShort
      ? { timeStyle: "short" }
      : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
  );
  const start = new Date(since).getTime();
  return Array.from({ length: many }, (_, index) =>
    format.format(new Date(start + index * widthS * 1_000)),
  );
}

// --- statements ---------------------------------------------------------------------------------

export interface NewAttribute {
  name: string;
  type: AttributeType;
}

/** A name as statements have it: in back quotes where it is more than letters and digits. */
export function quotedName(name: string): string {
  return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : "`" + name.replaceAll("`", "") + "`";
}

const quotedText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export const webFeedStatement = (url: string, name: string): string =>
  `register feed ${quotedText(url.trim())} as ${quotedName(name)};`;

export function postedStatement(name: string, attributes: readonly NewAttribute[]): string {
  const listed = attributes
    .filter((each) => each.name.trim())
    .map((each) => `${quotedName(each.name.trim())} ${each.type}`);
  return `register stream ${quotedName(name)} from post (${listed.join(", ")});`;
}

/** A name for a source at this URL: `Example` of https://www.example.org/news/rss. */
export function nameFromUrl(text: string): string {
  let host: string;
  try {
    host = new URL(text.includes("://") ? text : `https://${text}`).hostname;
  } catch {
    return "";
  }
  const labels = host.replace(/^(www|feeds?|rss|blog|news)\./, "").split(".");
  const word = labels.length > 1 ? labels.at(-2)! : labels[0]!;
  const parts = word.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const name = parts.map((each) => each[0]!.toUpperCase() + each.slice(1)).join("");
  return /^\p{L}/u.test(name) ? name : name && `Feed${name}`;
}

const SAMPLES: Record<AttributeType, unknown> = {
  int: 1,
  float: 1.5,
  bool: true,
  text: "…",
  timestamp: "2026-01-01T12:00:00Z",
  link: "https://example.org/",
  bytes: "aGk=",
  xml: "<a/>",
};

/** How a program posts an event, without a token in it. */
export function postCommand(origin: string, name: string, attributes: NewAttribute[]): string {
  const event = Object.fromEntries(attributes.map((each) => [each.name, SAMPLES[each.type]]));
  const body = JSON.stringify(event).replaceAll("'", "'\\''");
  return [
    `curl ${origin}/v1/sources/${encodeURIComponent(name)}/items \\`,
    `  --header "Authorization: Bearer $HEADGATE_TOKEN" \\`,
    `  --json '${body}'`,
  ].join("\n");
}

/** What of an item stands for it in a list: its title, or the first text that it has. */
export function itemTitle(attributes: Record<string, unknown>): string {
  for (const name of ["title", "headline", "name", "subject", "text", "description"]) {
    const value = attributes[name];
    if (typeof value === "string" && value.trim()) return value;
  }
  const pairs = Object.entries(attributes).filter(([, value]) => value !== null);
  return pairs.map(([name, value]) => `${name} ${String(value)}`).join(" · ") || "(no attributes)";
}

/** The address of an item's original, if it is one that may be opened. */
export function itemLink(attributes: Record<string, unknown>): string | undefined {
  const value = attributes.link ?? attributes.url;
  return typeof value === "string" && /^https?:\/\//i.test(value) ? value : undefined;
}
