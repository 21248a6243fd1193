import { describe, expect, it } from "vitest";
import type { ReadingItem } from "../../lib/river_items";
import { cardItems, parametersOf, queryOf } from "./cards";

const item = (position: number, id: string, more: Partial<ReadingItem> = {}): ReadingItem => ({
  position,
  id,
  source: "News",
  time: "2026-11-18T12:00:00Z",
  arrived: "2026-11-18T12:00:00Z",
  attributes: {},
  annotations: [],
  feeds: ["News"],
  read: false,
  starred: false,
  title: id,
  author: "",
  html: "",
  ...more,
});

describe("cards", () => {
  it("shows an item once, with all feeds and positions", () => {
    const joined = item(9, "a", { feeds: ["Pairs"], annotations: [{ items: [] }], read: true });
    const cards = cardItems([joined, item(8, "b"), item(7, "a"), item(7, "a")]);
    expect(cards.map((each) => each.item.id)).toEqual(["a", "b"]);
    expect(cards[0]).toMatchObject({ positions: [9, 7], feeds: ["News", "Pairs"], read: false });
    expect(cards[0]!.item.position).toBe(9);
  });

  it("keeps items of two sources apart that have the same id", () => {
    expect(cardItems([item(2, "a"), item(1, "a", { source: "Wire" })])).toHaveLength(2);
  });
});

describe("addresses", () => {
  it("say what is shown, and survive a reload", () => {
    const query = queryOf(["river", "Big news"], new URLSearchParams("view=all&search=x"));
    expect(query).toEqual({ feed: "Big news", label: "", view: "all", search: "x" });
    expect(parametersOf(query)).toEqual({ view: "all", label: "", search: "x" });
    expect(queryOf(["river"], new URLSearchParams("view=nonsense")).view).toBe("unread");
  });
});
