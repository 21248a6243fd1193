/** What the service knows of sources and feeds, for completion and forms; asked once and kept for a
 *  minute. */
import { api, result, type Schemas } from "./api";

const KEPT_MS = 60_000;
/** At most so many sources and so many feeds are found. */
export const NAMES_MAX = 20;
const SOURCES_LOOKED_AT = 3;
/** Names do not wait longer for their rates, which have to be counted. */
const RATES_MS = 400;

export interface NamedDefinition {
  name: string;
  kind: string;
  isSource: boolean;
  /** Items of the last day. */
  perDay?: number;
}

export interface KnownAttribute {
  name: string;
  type: string;
  /** Of the items that were looked at. */
  share: number;
}

export interface KnownValue {
  text: string;
  share: number;
  perDay?: number;
}

const kept = new Map<string, { at: number; value: Promise<unknown> }>();

/** One answer for all that ask the same within a minute; failures are asked again. */
function once<T>(key: string, ask: () => Promise<T>): Promise<T> {
  const known = kept.get(key);
  if (known && Date.now() - known.at < KEPT_MS) return known.value as Promise<T>;
  const value = ask();
  kept.set(key, { at: Date.now(), value });
  value.catch(() => kept.delete(key));
  return value;
}

/** Something was created or dropped. */
export const forgetKnown = (): void => kept.clear();

type Listed = "sources" | "feeds";

function named(listed: Listed, contains: string): Promise<NamedDefinition[]> {
  return once(`${listed} ${contains}`, async () => {
    const page = await result(
      api.GET("/v1/{listed}", {
        params: { path: { listed }, query: { contains, limit: NAMES_MAX } },
      }),
    );
    return page.entries.map(({ name, kind }) => ({ name, kind, isSource: listed === "sources" }));
  });
}

/** Sources and feeds whose names have a text in them, with their rates. */
export async function findDefinitions(
  contains: string,
  which: Listed[] = ["sources", "feeds"],
): Promise<NamedDefinition[]> {
  const lists = await Promise.all(which.map((each) => named(each, contains)));
  const found = lists.flat();
  const none = new Map<string, number>();
  const late = new Promise<typeof none>((resolve) => setTimeout(resolve, RATES_MS, none));
  const rates = await Promise.race([
    ratesOf(found.map((each) => each.name)).catch(() => none),
    late,
  ]);
  return found.map((each) => {
    const perDay = rates.get(each.name);
    return perDay === undefined ? each : { ...each, perDay };
  });
}

async function ratesOf(names: string[]): Promise<Map<string, number>> {
  if (!names.length) return new Map();
  const page = await once(`stats ${names.join("\n")}`, () =>
    result(api.GET("/v1/stats", { params: { query: { name: names } } })),
  );
  return new Map(page.entries.map((each) => [each.name, each.last_day]));
}

/** The sources that a name reads: itself, or those of a feed. */
export function sourcesOf(name: string): Promise<string[]> {
  return once(`sources of ${name}`, async () => {
    const plan = await result(api.POST("/v1/plan", { body: { feed: name } })).catch(() => null);
    if (!plan) return [name];
    return plan.after.nodes.filter((node) => node.op === "source").map((node) => node.text);
  });
}

function valuesOf(source: string, attribute?: string, prefix = "", limit = 1) {
  return once(`values ${source} ${attribute ?? "*"} ${prefix} ${limit}`, () =>
    result(
      api.GET("/v1/sources/{name}/values", {
        params: {
          path: { name: source },
          query: { ...(attribute ? { attribute } : {}), prefix, limit },
        },
      }),
    ),
  );
}

async function lookedAt(names: string[]): Promise<string[]> {
  const sources = await Promise.all(names.map(sourcesOf));
  return [...new Set(sources.flat())].slice(0, SOURCES_LOOKED_AT);
}

/** Attributes of the items of these sources or feeds, the most frequent first. */
export async function attributesOf(names: string[]): Promise<KnownAttribute[]> {
  const answers = await settled((await lookedAt(names)).map((each) => valuesOf(each)));
  const found = new Map<string, KnownAttribute>();
  for (const { name, type, present } of answers.flatMap((each) => each.attributes)) {
    const share = Math.max(present.share, found.get(name)?.share ?? 0);
    found.set(name, { name, type, share });
  }
  return [...found.values()].sort((a, b) => b.share - a.share);
}

/** Words or values of an attribute that begin with a prefix, with their rates, the most frequent
 *  first; without an attribute, of all texts. */
export async function valuesLike(
  names: string[],
  attribute: string | undefined,
  prefix: string,
  isWord: boolean,
): Promise<KnownValue[]> {
  const sources = await lookedAt(names);
  const answers = await settled(sources.map((each) => valuesOf(each, attribute, prefix, 12)));
  const found = new Map<string, KnownValue>();
  for (const each of answers.flatMap((answer) => answer.attributes))
    for (const { text, share, per_day } of isWord ? each.words : each.values)
      add(found, text, share, per_day);
  return [...found.values()].sort((a, b) => (b.perDay ?? b.share) - (a.perDay ?? a.share));
}

function add(found: Map<string, KnownValue>, text: string, share: number, perDay?: number | null) {
  const known = found.get(text);
  const sum = (perDay ?? 0) + (known?.perDay ?? 0);
  found.set(text, {
    text,
    share: Math.max(share, known?.share ?? 0),
    ...(perDay == null && known?.perDay == null ? {} : { perDay: sum }),
  });
}

async function settled<T>(asked: Promise<T>[]): Promise<T[]> {
  const answers = await Promise.allSettled(asked);
  return answers.filter((each) => each.status === "fulfilled").map((each) => each.value);
}

export type ItemCounts = Schemas["ItemCounts"];
