import { describe, expect, it } from "vitest";
import { ago, bytes, counted, duration } from "./format";

const NOW = new Date("2026-11-18T12:00:00Z");
const before = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000);

describe("times", () => {
  it("says how long ago something was", () => {
    expect(ago(before(2), NOW)).toBe("now");
    expect(ago(before(30), NOW)).toMatch(/^30/);
    expect(ago(before(3 * 3_600 + 10), NOW)).toMatch(/^3\s?h/);
  });

  it.each([
    [0.25, "250 ms"],
    [1.52, "1.5 s"],
    [59.4, "59 s"],
    [200, "3 min 20 s"],
    [7_500, "2 h 5 min"],
    [86_400, "1 d"],
  ])("writes %d seconds as %s", (seconds, text) => expect(duration(seconds)).toBe(text));
});

describe("sizes and counts", () => {
  it.each([
    [17, "17 B"],
    [1_234, "1.2 kB"],
    [53_000, "53 kB"],
    [3_400_000, "3.4 MB"],
  ])("writes %d bytes as %s", (value, text) => expect(bytes(value)).toBe(text));

  it("counts one item and two items", () => {
    expect(counted(1, "item")).toBe("1 item");
    expect(counted(2, "item")).toBe("2 items");
  });
});
