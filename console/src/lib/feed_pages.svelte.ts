/** The list of feeds, page by page, and the counts of the rows that are seen. 100,000 feeds are not
 *  read at once: the next page comes when the last rows come into sight. */
import { SvelteMap } from "svelte/reactivity";
import { api, Problem, result, type Schemas } from "./api";

const PAGE = 200;
const COUNTS_AT_ONCE = 60;
const COUNTS_MS = 120;
const AGAIN_MS = 15_000;

export class FeedPages {
  rows = $state.raw<Schemas["DefinitionEntry"][]>([]);
  total = $state<number>();
  error = $state.raw<Problem>();
  contains = $state("");
  counts = new SvelteMap<string, Schemas["ItemCounts"]>();
  #next: string | null | undefined = "";
  #isReading = false;
  #abort = new AbortController();
  #wanted = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asked = new Map<string, number>();
  #isStarted = false;

  get isEmpty(): boolean {
    return this.total === 0;
  }

  /** Read the feeds whose names have a text in them, from the first on. */
  async start(contains: string, anew = false): Promise<void> {
    if (this.#isStarted && contains === this.contains && !anew) return;
    this.#isStarted = true;
    this.#abort.abort();
    this.#abort = new AbortController();
    [this.contains, this.#next, this.#isReading] = [contains, "", false];
    await this.more(true);
  }

  async more(isFirst = false): Promise<void> {
    if (this.#isReading || this.#next == null) return;
    this.#isReading = true;
    const { signal } = this.#abort;
    try {
      const query = { after: this.#next, limit: PAGE, contains: this.contains };
      const page = await result(
        api.GET("/v1/{listed}", { params: { path: { listed: "feeds" }, query }, signal }),
      );
      if (signal.aborted) return;
      this.rows = isFirst ? page.entries : [...this.rows, ...page.entries];
      [this.total, this.error, this.#next] = [page.total, undefined, page.next];
    } catch (error) {
      if (signal.aborted) return;
      this.error = error instanceof Problem ? error : new Problem(-1, "Error", String(error));
    }
    this.#isReading = false;
  }

  /** Ask for the counts of a row that has come into sight; several are asked for together. */
  want(name: string): void {
    if (Date.now() - (this.#asked.get(name) ?? 0) < AGAIN_MS) return;
    this.#wanted.add(name);
    this.#timer ??= setTimeout(() => void this.#count(), COUNTS_MS);
  }

  async #count(): Promise<void> {
    this.#timer = undefined;
    // The last ones are in sight now; what was scrolled past is asked for when it is seen again.
    const names = [...this.#wanted].slice(-COUNTS_AT_ONCE);
    this.#wanted.clear();
    for (const name of names) this.#asked.set(name, Date.now());
    try {
      const page = await result(api.GET("/v1/stats", { params: { query: { name: names } } }));
      for (const each of page.entries) this.counts.set(each.name, each);
    } catch {
      for (const name of names) this.#asked.delete(name);
    }
  }

  stop(): void {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }
}
