import { describe, expect, it } from "vitest";
import { microseconds, priceWords } from "./price";

const found = (added_us: number, shared_by: number) => ({
  feeds: [],
  looked_at: 1,
  candidates: 1,
  cpu_us: 2 * added_us,
  added_us,
  share_us: added_us,
  parts: [{ text: "n > 1", cpu_us: added_us, shared_by, share_us: added_us, cheaper: "" }],
  text: "",
});

describe("prices", () => {
  it.each([
    [0, "0 µs"],
    [0.00005, "< 0.001 µs"],
    [0.0512, "0.051 µs"],
    [12.34, "12 µs"],
    [1_530, "1.5 ms"],
  ])("writes %d µs as %s", (value, text) => expect(microseconds(value)).toBe(text));

  it("says what is shared", () => {
    expect(priceWords(found(0.05, 41)).title).toBe("Almost free");
    expect(priceWords(found(0.05, 41)).text).toContain("41 other feeds share");
    expect(priceWords(found(100, 0)).level).toBe("high");
    expect(priceWords(found(10, 0)).text).toContain("No other feed");
  });
});
