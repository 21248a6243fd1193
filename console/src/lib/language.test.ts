import { describe, expect, it } from "vitest";
import {
  feedAt,
  feedName,
  fromNames,
  gist,
  readText,
  statements,
  tokenize,
  wantedWords,
  writeName,
  writeText,
} from "./language";
import { excerpt, headOf } from "./marks";
import { segments } from "./match_words";

const SCRIPT = `-- a comment; with a sign
create feed Rock from News where title contains 'it''s; rock';
create feed \`Big news\` from (acme.Rock as $a | News) as $r
  where $r[n > 5] and not title contains 'ad';
drop feed X`;

describe("tokens", () => {
  it("puts together to the text", () => {
    const tokens = tokenize(SCRIPT);
    expect(tokens.map(({ text }) => text).join("")).toBe(SCRIPT);
    expect(tokens.filter(({ kind }) => kind === "comment")).toHaveLength(1);
  });

  it("knows keywords in any case, and names in backticks", () => {
    const kinds = tokenize("CREATE `from` shares-link été 1e6 https://a.b/c?d").map(
      ({ kind }) => kind,
    );
    expect(kinds.filter((kind) => kind !== "space")).toEqual([
      "keyword",
      "name",
      "keyword",
      "name",
      "number",
      "url",
    ]);
  });

  it("leaves a text open", () => {
    expect(tokenize("title contains 'ro").at(-1)).toMatchObject({
      kind: "string",
      isWhole: false,
    });
  });
});

describe("statements", () => {
  it("ends them at signs outside of texts and comments", () => {
    expect(statements(SCRIPT).map(feedName)).toEqual(["Rock", "Big news", undefined]);
  });

  it("finds the feed at a place", () => {
    expect(feedName(feedAt(SCRIPT, SCRIPT.indexOf("Big"))!)).toBe("Big news");
    expect(feedName(feedAt(SCRIPT, SCRIPT.length)!)).toBe("Rock");
    expect(feedAt("show feeds;", 3)).toBeUndefined();
  });

  it("reads names behind from", () => {
    expect(fromNames(statements(SCRIPT)[1]!.tokens)).toEqual(["acme.Rock", "News"]);
    expect(fromNames(statements("create feed X")[0]!.tokens)).toEqual([]);
  });

  it("has the words that are wanted", () => {
    expect(wantedWords(SCRIPT)).toEqual(["it", "s", "rock"]);
  });

  it("is shown on one line", () => {
    expect(gist("create feed `A b`\n  from News\n  where n > 5;")).toBe("from News where n > 5");
  });
});

describe("names and texts", () => {
  it.each([
    ["News", "News"],
    ["Big news", "`Big news`"],
    ["from", "`from`"],
    ["acme.News", "acme.News"],
  ])("writes %s as %s", (name, written) => expect(writeName(name)).toBe(written));

  it("reads what it writes", () => {
    expect(readText(writeText("it's"))).toBe("it's");
    expect(readText("“rock”")).toBe("rock");
    expect(readText("'ro")).toBe("ro");
  });
});

describe("marks", () => {
  it("marks whole words in any case", () => {
    expect(segments("Rock, rocks and ROCK", new Set(["rock"]))).toEqual([
      { text: "Rock", isMarked: true },
      { text: ", rocks and ", isMarked: false },
      { text: "ROCK", isMarked: true },
    ]);
    expect(segments("", new Set(["a"]))).toEqual([]);
  });

  it("cuts a long text around a word", () => {
    const cut = excerpt(`${"x ".repeat(300)}rock${" y".repeat(300)}`, ["rock"], 100);
    expect(cut.length).toBeLessThan(104);
    expect(cut).toContain("rock");
  });

  it("names an item", () => {
    expect(headOf({ title: "A", description: "<b>B</b>" })).toEqual({
      title: "A",
      text: " B ",
    });
    expect(headOf({ price: 5, to: "Rome" }).title).toBe("price 5 · to Rome");
  });
});
