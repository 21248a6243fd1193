/** What a feed costs, as a sentence that people can compare. */
import type { Schemas } from "./api";
import { count } from "./format";

export interface PriceWords {
  level: "free" | "low" | "high";
  title: string;
  text: string;
}

const TINY_US = 0.01;
const LOW_US = 1;
const HIGH_US = 50;

/** `0.05 µs`, `12 µs`, `1.5 ms` */
export function microseconds(value: number): string {
  if (value === 0) return "0 µs";
  if (value >= 1_000) return `${round(value / 1_000)} ms`;
  return value < 0.001 ? "< 0.001 µs" : `${round(value)} µs`;
}

function round(value: number): string {
  return count(Number(value.toPrecision(2)));
}

export function priceWords(found: Schemas["SuggestAnswer"]): PriceWords {
  const isTiny = found.added_us < TINY_US;
  const shared = Math.max(0, ...found.parts.map((part) => part.shared_by));
  const sharing = shared
    ? `${count(shared)} other ${shared === 1 ? "feed shares" : "feeds share"} a condition of it.`
    : "No other feed shares a condition of it.";
  const added = isTiny
    ? "It adds next to no CPU time to an item"
    : `It adds ${microseconds(found.added_us)} of CPU to each item`;
  const alone =
    shared && found.cpu_us >= TINY_US
      ? `, ${microseconds(found.cpu_us)} if nothing were shared.`
      : ".";
  if (found.added_us < LOW_US)
    return { level: "free", title: "Almost free", text: `${added}${alone} ${sharing}` };
  if (found.added_us < HIGH_US)
    return { level: "low", title: "Cheap", text: `${added}${alone} ${sharing}` };
  return { level: "high", title: "Expensive", text: `${added}${alone} ${sharing}` };
}
