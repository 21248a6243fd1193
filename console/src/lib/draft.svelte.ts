/** A script that is being written, and what the service says of it: errors, and for the feed at the
 *  cursor a preview, its price, what is there already, its plan, and a backtest.
 *
 *      text ──► check ──► right ──► preview, suggest, plan ──► a pause ──► backtest
 *
 *  Each answer is for the text that was asked; what is under way for an older one is given up. */
import { onDestroy } from "svelte";
import { api, result, type PlacedError, type Schemas } from "./api";
import { runBacktest, type Backtest } from "./backtest";
import { feedAt, feedName, type StatementText } from "./language";
import { patient } from "./patient";
import { Resource } from "./resource.svelte";

const CHECK_MS = 300;
const BACKTEST_MS = 1_200;
const WEEK = "7d";

export class Draft {
  script = $state("");
  place = $state(0);
  errors = $state.raw<PlacedError[]>([]);
  /** The script that the errors are of. */
  checked = $state("");
  isRight = $derived.by(
    () => this.script.trim() !== "" && this.checked === this.script && !this.errors.length,
  );
  /** The statement of the feed that the panels are about; it was checked. */
  statement = $state("");
  progress = $state("");

  check = new Resource<Schemas["CheckAnswer"]>((signal) =>
    result(api.POST("/v1/check", { body: { script: this.script }, signal })),
  );
  preview = new Resource<Schemas["PreviewAnswer"]>((signal) => {
    const body = { statement: this.statement, samples: 10 };
    return patient(() => result(api.POST("/v1/preview", { body, signal })), signal);
  });
  suggest = new Resource<Schemas["SuggestAnswer"]>((signal) =>
    result(api.POST("/v1/suggest", { body: { statement: this.statement }, signal })),
  );
  plan = new Resource<Schemas["PlanAnswer"]>((signal) =>
    result(api.POST("/v1/plan", { body: { statement: this.statement }, signal })),
  );
  backtest = new Resource<Backtest>((signal) =>
    runBacktest(
      { statement: this.statement, since: WEEK, samples: 10 },
      signal,
      (now) => (this.progress = now.progress ?? ""),
    ),
  );
  #checkTimer: ReturnType<typeof setTimeout> | undefined;
  #backtestTimer: ReturnType<typeof setTimeout> | undefined;

  /** The feed at the cursor, right or not. */
  get feed(): StatementText | undefined {
    return feedAt(this.script, this.place);
  }

  get name(): string {
    const feed = this.feed;
    return (feed && feedName(feed)) ?? "";
  }

  /** The panels are of an older text. */
  get isBehind(): boolean {
    return this.statement !== "" && this.feed?.text !== this.statement;
  }

  write(script: string, place: number): void {
    this.place = place;
    if (script === this.script) {
      if (this.isRight) this.#look();
      return;
    }
    this.script = script;
    clearTimeout(this.#checkTimer);
    this.#checkTimer = setTimeout(() => void this.recheck(), CHECK_MS);
  }

  /** Check now; then look at the feed. Whether the script is right. */
  async recheck(): Promise<boolean> {
    clearTimeout(this.#checkTimer);
    const script = this.script;
    if (!script.trim()) {
      this.check.cancel();
      [this.checked, this.errors] = [script, []];
      return false;
    }
    await this.check.load();
    if (script !== this.script || this.check.error || !this.check.value) return false;
    const errors = (this.check.value.errors ?? []) as PlacedError[];
    [this.checked, this.errors] = [script, errors];
    if (!errors.length) this.#look();
    return !errors.length;
  }

  /** Look at the feed at the cursor, if it is another one. */
  #look(): void {
    const text = this.feed?.text ?? "";
    if (!text || text === this.statement) return;
    this.statement = text;
    for (const each of [this.preview, this.suggest, this.plan]) void each.load();
    this.backtest.cancel();
    clearTimeout(this.#backtestTimer);
    this.#backtestTimer = setTimeout(() => void this.runBacktest(), BACKTEST_MS);
  }

  async runBacktest(): Promise<void> {
    clearTimeout(this.#backtestTimer);
    this.progress = "";
    await this.backtest.load();
  }

  close(): void {
    clearTimeout(this.#checkTimer);
    clearTimeout(this.#backtestTimer);
    const all = [this.check, this.preview, this.suggest, this.plan, this.backtest];
    for (const each of all) each.cancel();
  }
}

export function draft(): Draft {
  const made = new Draft();
  onDestroy(() => made.close());
  return made;
}
