/** A backtest: started, asked for until it is done, and cancelled when nobody waits any more. */
import { api, Problem, result, type Schemas } from "./api";

export type Backtest = Schemas["BacktestAnswer"];

const POLL_MS = 500;
const POLL_MAX_MS = 3_000;

export async function runBacktest(
  body: { statement?: string; feed?: string; since: string; samples: number; at?: string },
  signal: AbortSignal,
  onProgress: (now: Backtest) => void = () => undefined,
): Promise<Backtest> {
  let now = await result(api.POST("/v1/backtests", { body, signal }));
  const id_ = now.id;
  const cancel = () =>
    void api.DELETE("/v1/backtests/{id_}", { params: { path: { id_ } } }).catch(() => undefined);
  signal.addEventListener("abort", cancel);
  try {
    for (let pause = POLL_MS; now.state === "running" || now.state === "waiting";) {
      onProgress(now);
      await sleep(pause, signal);
      pause = Math.min(pause * 1.4, POLL_MAX_MS);
      now = await result(api.GET("/v1/backtests/{id_}", { params: { path: { id_ } }, signal }));
    }
  } finally {
    signal.removeEventListener("abort", cancel);
  }
  if (now.state !== "done") throw new Problem(-1, now.state, now.error ?? now.state);
  return now;
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}

const DAY_MS = 86_400_000;

/** The days from `since` to `until` in UTC, as the service counts them, with their items. */
export function byDay(
  counts: Record<string, number>,
  since: string,
  until: string,
): { day: string; items: number }[] {
  const days: { day: string; items: number }[] = [];
  const last = new Date(until).toISOString().slice(0, 10);
  for (let time = Date.parse(since); ; time += DAY_MS) {
    const day = new Date(time).toISOString().slice(0, 10);
    if (day > last) return days;
    days.push({ day, items: counts[day] ?? 0 });
  }
}
