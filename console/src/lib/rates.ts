/** Totals that grow, as rates. */

export interface Moment {
  at_s: number;
  items: number;
  matches: number;
  delivered: number;
  batch_p50_ms: number;
}

export type Counter = "items" | "matches" | "delivered";

export interface RatePoint {
  at: number;
  value: number;
}

/** How much a counter grows in a second, between each two moments that follow each other. A counter
 *  that falls was begun anew: it says nothing there. */
export function rates(history: readonly Moment[], counter: Counter): RatePoint[] {
  const points: RatePoint[] = [];
  for (let index = 1; index < history.length; index++) {
    const [before, now] = [history[index - 1]!, history[index]!];
    const seconds = now.at_s - before.at_s;
    const grown = now[counter] - before[counter];
    if (seconds > 0 && grown >= 0) points.push({ at: now.at_s, value: grown / seconds });
  }
  return points;
}

/** The rate over the last half minute. */
export function recentRate(history: readonly Moment[], counter: Counter): number {
  const last = history.at(-1);
  const first = history.find((each) => last && last.at_s - each.at_s <= 30);
  if (!last || !first || last.at_s <= first.at_s) return 0;
  return Math.max(0, (last[counter] - first[counter]) / (last.at_s - first.at_s));
}
