/** Items as the river shows them: titles, summaries, texts, pictures, and rows of the list of feeds. */
import type { Schemas } from "./api";
import { fullTime } from "./format";

export type ReadingItem = Schemas["ReadingItem"];
export type ReadingFeed = Schemas["ReadingFeed"];

/** The attributes of a web feed's entry. What has others only is an event or a document. */
const ENTRY = new Set(
  (
    "title description content link author category published updated guid language comments " +
    "enclosure"
  ).split(" "),
);
const SUMMARY_LENGTH = 240;
const TITLE_LENGTH = 120;
const VALUE_LENGTH = 40;
const TAG = /<[a-z/!?]/i;
const URL_LINE = /^https?:\/\/\S+$/;

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The text that the publisher wrote, maybe with markup. */
export const bodyOf = (item: ReadingItem): string =>
  text(item.attributes["content"]) || text(item.attributes["description"]);

export const hasMarkup = (item: ReadingItem): boolean => TAG.test(bodyOf(item));

export function cut(value: string, length: number): string {
  return value.length <= length ? value : value.slice(0, length - 1).trimEnd() + "…";
}

/** Attributes that no entry of a web feed has, in the order of the item. */
export function otherAttributes(item: ReadingItem): [string, unknown][] {
  return Object.entries(item.attributes).filter(
    ([name, value]) => !ENTRY.has(name) && value !== null,
  );
}

/** Whether nobody wrote a text for people: an event, a row of a table, a document. */
const isEvent = (item: ReadingItem): boolean =>
  !text(item.attributes["title"]).trim() && !bodyOf(item) && !("document" in item.attributes);

/** The values of an event that say something in few words; texts first. */
function shortValues(item: ReadingItem): [string, unknown][] {
  const values = otherAttributes(item)
    .filter(([, value]) => typeof value !== "object" && !/[<\n]|:\/\//.test(String(value)))
    .filter(([, value]) => String(value).length <= VALUE_LENGTH && !isTime(value));
  const rank = ([, value]: [string, unknown]) => Number(typeof value !== "string");
  return values.sort((a, b) => rank(a) - rank(b)).slice(0, 3);
}

const named = ([name, value]: [string, unknown]): string => `${name} ${String(value)}`;

/** The title; of an event, which has none, its short values. */
export function titleOf(item: ReadingItem): string {
  const values = isEvent(item) ? shortValues(item).map(named) : [];
  if (values.length) return cut(values.join(" · "), TITLE_LENGTH);
  return text(item.attributes["title"]) ? item.title : item.title.replace(/^document /, "");
}

/** A time as attributes have it: `2026-11-18T12:00:00+00:00`. */
export const isTime = (value: unknown): value is string =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.]*(Z|[+-]\d\d:\d\d)$/.test(value);

/** The text on one line, without the targets of its links; of an event, what its title lacks. */
export function summaryOf(item: ReadingItem): string {
  if (isEvent(item)) {
    const inTitle = new Set(shortValues(item).map(([name]) => name));
    const others = otherAttributes(item).filter(([name]) => !inTitle.has(name));
    const short = others.map(([name, value]): [string, unknown] => [
      name,
      isTime(value) ? fullTime(new Date(value)) : value,
    ]);
    return cut(
      short
        .filter(([, value]) => typeof value !== "object")
        .map(named)
        .join(" · "),
      SUMMARY_LENGTH,
    );
  }
  const plain = bodyOf(item)
    .replace(/<[^<>]*>/g, " ")
    .replace(/https?:\/\/\S+/g, " ")
    .replace(/&[a-z#0-9]+;/gi, " ");
  return cut(plain.replace(/\s+/g, " ").trim(), SUMMARY_LENGTH);
}

/** A text without markup as paragraphs; the targets of its links, which follow it, for themselves. */
export function paragraphs(item: ReadingItem): { lines: string[]; links: string[] } {
  const lines = bodyOf(item)
    .split("\n")
    .map((each) => each.trim())
    .filter(Boolean);
  let last = lines.length;
  while (last > 0 && URL_LINE.test(lines[last - 1]!)) last--;
  const links = lines.slice(last).filter((each) => each !== item.link);
  return { lines: lines.slice(0, last), links };
}

export interface RelatedItem {
  title: string;
  source: string;
  link: string;
  picture: string;
}

/** What joins have added to an item, each once. Its values are as they were published. */
export function relatedOf(item: ReadingItem): RelatedItem[] {
  const found = new Map<string, RelatedItem>();
  for (const annotation of item.annotations ?? [])
    for (const each of (annotation["items"] ?? []) as Record<string, unknown>[]) {
      const attributes = new Map(
        Array.isArray(each["attributes"]) ? (each["attributes"] as [string, unknown][]) : [],
      );
      const link = (name: string): string => {
        const value = attributes.get(name);
        const target = value && typeof value === "object" ? Object.values(value)[0] : value;
        return webLink(text(target));
      };
      const id = text(each["id"]);
      found.set(id, {
        title: text(attributes.get("title")) || id,
        source: text(each["source"]),
        link: link("link"),
        picture: pictureLink(link("enclosure")),
      });
    }
  return [...found.values()];
}

/** The link if it leads to a web page; otherwise nothing. */
export function webLink(target: string): string {
  return /^https?:\/\/[^\s/]/i.test(target) ? target : "";
}

const PICTURE = /\.(avif|gif|jpe?g|png|svg|webp)$/i;

/** The link if it leads to a picture, as far as its name tells. */
export function pictureLink(target: string): string {
  try {
    return PICTURE.test(new URL(target).pathname) ? target : "";
  } catch {
    return "";
  }
}

// --- the list of feeds ---------------------------------------------------------------------------

export type FeedRow =
  | { kind: "label"; label: string; unread: number; isOpen: boolean }
  | { kind: "feed"; feed: ReadingFeed };

export const UNREAD_MAX = 1_000;

/** Counts stop at 1,000. */
export const shownCount = (value: number): string =>
  value >= UNREAD_MAX ? "1,000+" : String(value);

/** The feeds by label, those without one last; a closed label hides its feeds, and a filter opens all
 *  labels and keeps the feeds whose title, name or label has it. */
export function feedRows(
  feeds: readonly ReadingFeed[],
  { closed, filter }: { closed: ReadonlySet<string>; filter: string },
): FeedRow[] {
  const wanted = filter.trim().toLowerCase();
  const byLabel = new Map<string, ReadingFeed[]>();
  for (const feed of feeds) {
    const words = `${feed.title}\n${feed.name}\n${feed.label}`.toLowerCase();
    if (!words.includes(wanted)) continue;
    const same = byLabel.get(feed.label);
    if (same) same.push(feed);
    else byLabel.set(feed.label, [feed]);
  }
  const labels = [...byLabel.keys()].sort((a, b) => Number(!a) - Number(!b) || a.localeCompare(b));
  return labels.flatMap((label) => {
    const own = byLabel.get(label)!;
    const unread = own.reduce((sum, each) => sum + each.unread, 0);
    const isOpen = Boolean(wanted) || !closed.has(label);
    const rows: FeedRow[] = isOpen ? own.map((feed) => ({ kind: "feed", feed })) : [];
    return [{ kind: "label", label, unread, isOpen } as FeedRow, ...rows];
  });
}
