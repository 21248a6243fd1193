import { describe, expect, it } from "vitest";
import {
  feedRows,
  paragraphs,
  pictureLink,
  relatedOf,
  shownCount,
  summaryOf,
  titleOf,
  webLink,
  type ReadingFeed,
  type ReadingItem,
} from "./river_items";

function item(attributes: Record<string, unknown>, more: Partial<ReadingItem> = {}): ReadingItem {
  return {
    position: 7,
    id: "7",
    time: "2026-11-18T12:00:00Z",
    arrived: "2026-11-18T12:00:00Z",
    attributes,
    annotations: [],
    feeds: [],
    read: false,
    starred: false,
    title: "as the service says",
    author: "",
    html: "",
    ...more,
  };
}

describe("items", () => {
  it("have the title of the service, and events one of their values", () => {
    expect(titleOf(item({ title: "x" }))).toBe("as the service says");
    expect(titleOf(item({ description: "x" }))).toBe("as the service says");
    const shop = "https://rail.example/1";
    expect(titleOf(item({ price: 396, time: "2026-12-12T14:00:00+00:00", to: "Rome", shop }))).toBe(
      "to Rome · price 396",
    );
    const document = { document: "<news/>", name: "n" };
    expect(titleOf(item(document, { title: "document ACME" }))).toBe("ACME");
  });

  it("have a summary without markup and addresses", () => {
    const long = `<p>Rock &amp; <b>roll</b></p>\nhttps://a.example/ ${"x".repeat(500)}`;
    expect(summaryOf(item({ description: long }))).toMatch(/^Rock roll x+…$/);
    expect(summaryOf(item({ n: 1 }))).toBe("");
    const shop = "https://rail.example/1";
    expect(summaryOf(item({ n: 1, shop }))).toBe(`shop ${shop}`);
  });

  it("have paragraphs, and the links behind them", () => {
    const description = "One\n\nTwo https://b.example\nhttps://own.example\nhttps://a.example/";
    const found = paragraphs(item({ description }, { link: "https://own.example" }));
    expect(found).toEqual({
      lines: ["One", "Two https://b.example"],
      links: ["https://a.example/"],
    });
  });

  it("have related items once, with links that lead to the web", () => {
    const attributes = [
      ["title", "Photo"],
      ["link", { link: "javascript:alert(1)" }],
      ["enclosure", { link: "https://a.example/x.svg" }],
    ];
    const joined = { id: "p", source: "Photos", attributes };
    const annotations = [{ items: [joined, joined] }];
    expect(relatedOf(item({}, { annotations }))).toEqual([
      { title: "Photo", source: "Photos", link: "", picture: "https://a.example/x.svg" },
    ]);
  });

  it("know links and pictures", () => {
    expect(webLink("https://a.example")).toBe("https://a.example");
    expect(webLink("data:text/html,x")).toBe("");
    expect(pictureLink("https://a.example/x.PNG?y")).toBe("https://a.example/x.PNG?y");
    expect(pictureLink("https://a.example/x.mp3")).toBe("");
    expect(pictureLink("")).toBe("");
  });
});

describe("the list of feeds", () => {
  const feed = (name: string, label: string, unread = 0): ReadingFeed => ({
    name,
    kind: "feed",
    title: name,
    label,
    unread,
    read_below: 0,
  });
  const FEEDS = [feed("A", "", 3), feed("B", "Songs", 2), feed("C", "Songs", 5)];
  const names = (closed: string[], filter = "") =>
    feedRows(FEEDS, { closed: new Set(closed), filter }).map((each) =>
      each.kind === "feed" ? each.feed.name : `# ${each.label}`,
    );

  it("groups by label, those without one last", () => {
    expect(names([])).toEqual(["# Songs", "B", "C", "# ", "A"]);
    expect(names(["Songs"])).toEqual(["# Songs", "# ", "A"]);
  });

  it("filters by title, name and label, also in closed labels", () => {
    expect(names(["Songs"], " c ")).toEqual(["# Songs", "C"]);
    expect(names([], "song")).toEqual(["# Songs", "B", "C"]);
    expect(names([], "zzz")).toEqual([]);
  });

  it("shows that counts stop", () => {
    expect(shownCount(999)).toBe("999");
    expect(shownCount(1_000)).toBe("1,000+");
  });
});
