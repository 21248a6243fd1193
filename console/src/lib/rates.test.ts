import { describe, expect, it } from "vitest";
import { rates, recentRate, type Moment } from "./rates";

const moment = (at_s: number, items: number): Moment => ({
  at_s,
  items,
  matches: 0,
  delivered: 0,
  batch_p50_ms: 0,
});

describe("rates", () => {
  it("are differences by time", () => {
    const history = [moment(0, 0), moment(5, 50), moment(15, 50)];
    expect(rates(history, "items")).toEqual([
      { at: 5, value: 10 },
      { at: 15, value: 0 },
    ]);
  });

  it("say nothing where a counter was begun anew", () => {
    expect(rates([moment(0, 100), moment(5, 3), moment(10, 13)], "items")).toEqual([
      { at: 10, value: 2 },
    ]);
  });

  it("are none without two moments", () => {
    expect(rates([], "items")).toEqual([]);
    expect(recentRate([moment(0, 7)], "items")).toBe(0);
  });

  it("are those of the last half minute", () => {
    const history = [moment(0, 0), moment(70, 700), moment(100, 1_000)];
    expect(recentRate(history, "items")).toBe(10);
  });
});
