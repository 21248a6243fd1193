import { describe, expect, it } from "vitest";
import { emptyForm, missingIn, writeForm } from "./form_statement";

describe("the form", () => {
  it("writes a statement", () => {
    const form = {
      ...emptyForm(),
      name: "Cheap rock",
      sources: ["Tickets", "Big news"],
      all: "rock's night",
      any: "Paris, Rome",
      none: "ad",
      attribute: "title",
      conditions: [
        { attribute: "price", type: "int", relation: "<", value: "100" },
        { attribute: "price", type: "int", relation: ">", value: "x" },
        { attribute: "sold", type: "bool", relation: "=", value: "false" },
      ],
      output: "mail" as const,
      target: "me@mail.example",
    };
    expect(writeForm(form)).toBe(`create feed \`Cheap rock\`
  from (Tickets | \`Big news\`)
  where title contains 'rock''s night'
    and (title contains 'Paris' or title contains 'Rome')
    and not title contains 'ad'
    and price < 100
    and sold = false;

subscribe to \`Cheap rock\` output mail 'me@mail.example' for 30 days;
`);
    expect(missingIn(form)).toBe("");
  });

  it("says what is missing", () => {
    expect(missingIn(emptyForm())).toContain("source");
    expect(missingIn({ ...emptyForm(), sources: ["A"] })).toContain("name");
  });
});
