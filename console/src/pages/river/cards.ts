/** Which items the river shows, out of the address; and pages of them put together, an item once. */
import type { ReadingItem } from "../../lib/river_items";

export type View = "unread" | "all" | "starred";

export interface RiverQuery {
  feed: string;
  label: string;
  view: View;
  search: string;
}

export function queryOf(parts: string[], query: URLSearchParams): RiverQuery {
  const view = query.get("view");
  return {
    feed: parts[1] ?? "",
    label: query.get("label") ?? "",
    view: view === "all" || view === "starred" ? view : "unread",
    search: query.get("search") ?? "",
  };
}

/** The part of an address behind `/river`; the unread view has none. */
export const parametersOf = (query: RiverQuery): Record<string, string> => ({
  view: query.view === "unread" ? "" : query.view,
  label: query.label,
  search: query.search,
});

/** An item is known by its source and id: it may lie at several positions of the log, since what a
 *  join has made of it is stored for itself. The newest is shown, and marks are for all of them. */
export const keyOf = (item: ReadingItem): string => `${item.source ?? ""}\n${item.id}`;

export interface CardItem {
  key: string;
  item: ReadingItem;
  positions: number[];
  feeds: string[];
  read: boolean;
  starred: boolean;
}

/** The items of pages as cards, the newest first. */
export function cardItems(items: Iterable<ReadingItem>): CardItem[] {
  const found = new Map<string, CardItem>();
  for (const item of items) {
    const key = keyOf(item);
    const card = found.get(key);
    if (!card) {
      const { feeds, read, starred, position } = item;
      found.set(key, { key, item, positions: [position], feeds, read, starred });
      continue;
    }
    if (card.positions.includes(item.position)) continue;
    card.positions = [...card.positions, item.position];
    card.feeds = [...new Set([...card.feeds, ...item.feeds])].sort();
    card.read &&= item.read;
    card.starred ||= item.starred;
    // What a join has added is worth more than what is newer.
    if (!card.item.annotations?.length && item.annotations?.length) card.item = item;
  }
  return [...found.values()];
}
