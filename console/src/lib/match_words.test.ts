import { describe, expect, it } from "vitest";
import { foundWords, reasonOf, segments, wordsFor, wordsIn, type WhyData } from "./match_words";

const WHY: WhyData = {
  branches: [
    { answer: "no", condition: "Wire", parts: [{ answer: "no", condition: "contains 'x'" }] },
    {
      answer: "yes",
      condition: "News",
      parts: [
        { answer: "yes", condition: "title contains 'Rock ''n'' roll'" },
        { answer: "yes", condition: "contains phrase 'new album'" },
        {
          answer: "yes",
          condition: "not",
          parts: [{ answer: "no", condition: "title contains 'ferry'" }],
        },
        {
          answer: "yes",
          condition: "one of",
          parts: [
            { answer: "no", condition: "n = 1" },
            { answer: "yes", condition: "n = 2" },
          ],
        },
      ],
    },
  ],
};
const marked = (text: string, ...words: string[]) =>
  segments(text, new Set(words))
    .map((each) => (each.isMarked ? `[${each.text}]` : each.text))
    .join("");

describe("why a feed has an item", () => {
  it("finds the words of conditions that hold, by attribute", () => {
    const found = foundWords(WHY);
    expect([...wordsFor(found, "title")]).toEqual(["rock", "n", "roll", "new", "album"]);
    expect([...wordsFor(found, "description")]).toEqual(["new", "album"]);
  });

  it("says on one line which conditions decided", () => {
    expect(reasonOf(WHY)).toBe(
      "title contains 'Rock ''n'' roll' and contains phrase 'new album' and " +
        "not title contains 'ferry' and n = 2",
    );
    expect(reasonOf({ branches: [{ answer: "yes", condition: "News" }] })).toBe(
      "everything of News",
    );
    expect(reasonOf({})).toBe("");
  });

  it("takes open branches where no other one says yes", () => {
    const part = { answer: "yes", condition: "title contains 'Muse'" } as const;
    const join = { answer: "open", condition: "⋈ Photos#1 [title similar window.title]" };
    const why = { branches: [{ answer: "open", condition: "News", parts: [part, join] }] };
    expect(foundWords(why as WhyData)).toHaveLength(1);
    expect(reasonOf(why as WhyData)).toMatch(/Muse' and a join has found/);
  });
});

describe("marks", () => {
  it("are whole words, whatever their case", () => {
    expect(marked("Rock rocks: ROCK, hard-rock", "rock")).toBe("[Rock] rocks: [ROCK], hard-[rock]");
    expect(marked("Ｒｏｃｋ", "rock")).toBe("[Ｒｏｃｋ]");
    expect(marked("", "rock")).toBe("");
    expect(marked("plain")).toBe("plain");
  });

  it("are found inside of text without spaces", () => {
    expect(marked("私は東京都と東京へ", "東京")).toBe("私は[東京]都と[東京]へ");
  });

  it("keep every character", () => {
    const text = "<b>Rock &amp; roll</b> — रॉक rock";
    const parts = segments(text, new Set(wordsIn("rock रॉक")));
    expect(parts.map((each) => each.text).join("")).toBe(text);
    expect(parts.filter((each) => each.isMarked)).toHaveLength(3);
  });
});
