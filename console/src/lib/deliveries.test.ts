import { describe, expect, it } from "vitest";
import { everyText, replayText, statusTone, stillThere, waitingText } from "./deliveries";

const NOTHING = { letters: 0, letters_left: 0, items: 0, resumed: false };

describe("replays", () => {
  it("says what is sent again", () => {
    expect(replayText(NOTHING)).toBe("Nothing is sent again.");
    expect(replayText({ ...NOTHING, letters: 1 })).toBe("1 dead letter is sent again.");
    expect(replayText({ ...NOTHING, letters: 2, items: 1 })).toBe(
      "2 dead letters and 1 item that had been sent before are sent again.",
    );
  });

  it("says what is left, and that it goes on", () =>
    expect(replayText({ letters: 2, letters_left: 3, items: 0, resumed: true })).toBe(
      "2 dead letters are sent again, 3 are left for later, and the subscription goes on.",
    ));
});

describe("figures", () => {
  it("does not pretend to have counted more than it has", () => {
    expect(waitingText(12)).toBe("12");
    expect(waitingText(1_000)).toMatch(/\+$/);
  });

  it("says how often a digest is sent", () => {
    expect(everyText(undefined)).toBe("at once");
    expect(everyText(10_800)).toBe("every 3 h");
  });

  it.each([
    [undefined, "bad"],
    [204, "good"],
    [302, "warn"],
    [503, "bad"],
  ])("gives %s the tone %s", (status, tone) => expect(statusTone(status)).toBe(tone));

  it("keeps the selection of what is still listed", () =>
    expect([...stillThere(new Set([1, 2, 3]), [2, 3, 4])]).toEqual([2, 3]));
});
