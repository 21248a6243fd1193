import { describe, expect, it } from "vitest";
import {
  itemLink,
  itemTitle,
  nameFromUrl,
  postCommand,
  postedStatement,
  quotedName,
  rateText,
  roughTime,
  sourceAddress,
  stretchLabels,
  summary,
  webFeedStatement,
  type SourceOverview,
} from "./sources";

const NOW = new Date("2026-11-18T12:00:00Z");

function source(changes: Partial<SourceOverview> = {}): SourceOverview {
  return {
    name: "News",
    kind: "rss",
    state: "fine",
    items: 10,
    counts: [],
    failures: 0,
    ...changes,
  };
}

describe("rates", () => {
  it.each([
    [12, "12 a day"],
    [2.5, "2.5 a day"],
    [400, "400 a day"],
    [0.5, "3.5 a week"],
    [0.1, "3 a month"],
    [0.001, "less than 1 a month"],
    [14_400, "10 a minute"],
    [864_000, "10 a second"],
  ])("says %d a day as %s", (perDay, text) => expect(rateText(perDay)).toBe(text));

  it("says nothing where there is no rhythm", () => expect(rateText(undefined)).toBe(""));

  it.each([
    [30, "30 s"],
    [90, "1 minute"],
    [7_200, "2 hours"],
    [100_000, "27 hours"],
    [3 * 86_400, "3 days"],
  ])("says %d seconds as %s", (seconds, text) => expect(roughTime(seconds)).toBe(text));
});

describe("one line about a source", () => {
  it("has the first line of what is wrong", () =>
    expect(summary(source({ state: "broken", problem: "it answers 500\nmore" }), NOW)).toBe(
      "it answers 500",
    ));

  it("leaves out the address that errors begin with", () => {
    const url = "https://a.org/rss";
    const broken = source({ state: "broken", url, problem: `${url}: it answers 500` });
    expect(summary(broken, NOW)).toBe("it answers 500");
  });

  it("compares a silence with the rhythm", () => {
    const quiet = source({
      state: "quiet",
      last_arrived: "2026-11-15T12:00:00Z",
      per_day: 12,
    });
    expect(summary(quiet, NOW)).toBe("Quiet for 3 days, usually 12 a day");
  });

  it("has the place of one that is fine", () =>
    expect(summary(source({ url: "https://www.example.org/rss" }), NOW)).toBe("example.org/rss"));
});

describe("statements", () => {
  it("quotes names and texts", () => {
    expect(quotedName("News")).toBe("News");
    expect(quotedName("Big news")).toBe("`Big news`");
    expect(webFeedStatement(" https://a.org/?q='x' ", "A")).toBe(
      "register feed 'https://a.org/?q=''x''' as A;",
    );
    const attributes = [
      { name: "price", type: "float" },
      { name: " ", type: "text" },
    ] as const;
    expect(postedStatement("Tickets", attributes)).toBe(
      "register stream Tickets from post (price float);",
    );
  });

  it.each([
    ["https://www.example.org/news/rss", "Example"],
    ["feeds.the-site.com", "TheSite"],
    ["https://9to5.example/", "Feed9to5"],
    ["http://", ""],
  ])("names %s %s", (url, name) => expect(nameFromUrl(url)).toBe(name));

  it("posts without a token in the command", () => {
    const command = postCommand("http://localhost:1", "My source", [
      { name: "it's", type: "text" },
    ]);
    expect(command).toContain("http://localhost:1/v1/sources/My%20source/items");
    expect(command).toContain("$HEADGATE_TOKEN");
    expect(command).toContain(`{"it'\\''s":"…"}`);
  });
});

describe("addresses and items", () => {
  it("leaves /sources/new to the page that makes one", () => {
    expect(sourceAddress("News")).toBe("/sources/News");
    expect(sourceAddress("new")).toBe("/sources/new?tab=items");
  });

  it("shows a title, or what there is", () => {
    expect(itemTitle({ price: 3, title: "Cheap" })).toBe("Cheap");
    expect(itemTitle({ price: 3, to: "Rome", none: null })).toBe("price 3 · to Rome");
  });

  it("opens nothing but web addresses", () => {
    expect(itemLink({ link: "https://a.org/" })).toBe("https://a.org/");
    expect(itemLink({ link: "javascript:alert(1)" })).toBeUndefined();
  });

  it("labels every stretch", () =>
    expect(stretchLabels("2026-11-18T10:00:00Z", 3_600, 3)).toHaveLength(3));
});
