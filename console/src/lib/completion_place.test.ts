import { describe, expect, it } from "vitest";
import { placeAt } from "./completion_place";

/** The place at the sign ▮. */
function at(script: string) {
  const offset = script.indexOf("▮");
  return placeAt(script.replace("▮", ""), offset);
}

describe("what is being written", () => {
  it.each([
    ["▮", "statement", ""],
    ["cre▮", "words", "cre"],
    ["create feed X from ▮", "definition", ""],
    ["create feed X from Ne▮", "definition", "Ne"],
    ["create feed X from (A | ▮", "definition", ""],
    ["create feed X from News ▮", "words", ""],
    ["create feed X from News where ti▮", "attribute", "ti"],
    ["create feed X from News where not ▮", "attribute", ""],
    ["create feed X from News where title ▮", "operator", ""],
    ["create feed X from News where n between 1 and ▮", "none", ""],
    ["create feed X from News where n > 1 an▮", "words", "an"],
    ["create feed X from News as $a where $a[▮", "attribute", ""],
    ["subscribe to ▮", "definition", ""],
    ["subscribe to X output ▮", "words", ""],
    ["drop feed ▮", "definition", ""],
    ["create feed X from A; ▮", "statement", ""],
    ["register feed 'https://▮", "none", ""],
  ])("in %s it is %s", (script, kind, prefix) => {
    const found = at(script);
    expect([found.kind === "statement" && prefix ? "words" : found.kind, found.prefix]).toEqual([
      kind,
      prefix,
    ]);
  });

  it("is a word of a text that contains is about", () => {
    expect(at("create feed X from News, where title contains 'rock co▮'")).toMatchObject({
      kind: "text",
      prefix: "co",
      isWord: true,
      attribute: "title",
      sources: ["News"],
    });
  });

  it("is a whole text where texts are compared", () => {
    expect(at("create feed X from News where category in ('a', 'new y▮")).toMatchObject({
      kind: "text",
      prefix: "new y",
      isWord: false,
      attribute: "category",
    });
  });

  it("is a word of the whole item without an attribute", () => {
    const found = at("create feed X from News where contains 'ro▮'");
    expect(found).toMatchObject({ kind: "text", prefix: "ro", isWord: true });
    expect(found.attribute).toBeUndefined();
  });

  it("knows all that a union reads", () => {
    expect(at("create feed X from (A | acme.B) as $r where $r[▮").sources).toEqual(["A", "acme.B"]);
  });
});
