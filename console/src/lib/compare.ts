/** A feed beside its own past: what both would have had of the last week. */
import { api, Problem, result, type Schemas } from "./api";

const POLL_MS = 700;

export async function compareFeeds(
  feed: string,
  at: string,
  signal: AbortSignal,
): Promise<Schemas["ComparisonAnswer"]> {
  // An instant within the version: it begins at `at`.
  const then = new Date(Date.parse(at) + 1).toISOString();
  const body = { left: { feed }, right: { feed, at: then }, since: "7d" };
  let now = await result(api.POST("/v1/comparisons", { body, signal }));
  while (now.state === "waiting" || now.state === "running") {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const params = { path: { id_: now.id } };
    now = await result(api.GET("/v1/comparisons/{id_}", { params, signal }));
  }
  if (now.state !== "done") throw new Problem(-1, now.state, now.error ?? now.state);
  return now;
}
