/** A value that is loaded, and looked at while it is: loading, there, stale, failed. */
import { onDestroy } from "svelte";
import { Problem } from "./api";

export class Resource<T> {
  value = $state.raw<T>();
  error = $state.raw<Problem>();
  isLoading = $state(false);
  /** When the value was read. An error afterwards leaves it: it is shown with this time. */
  asOf = $state.raw<Date>();
  #abort: AbortController | undefined;
  #read: (signal: AbortSignal) => Promise<T>;

  constructor(read: (signal: AbortSignal) => Promise<T>) {
    this.#read = read;
  }

  /** Read it, or read it again. What is under way is given up. */
  async load(): Promise<void> {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    this.isLoading = true;
    try {
      const value = await this.#read(abort.signal);
      if (abort.signal.aborted) return;
      [this.value, this.error, this.asOf] = [value, undefined, new Date()];
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = error instanceof Problem ? error : new Problem(-1, "Error", String(error));
      if (!(error instanceof Problem)) console.error(error);
    }
    this.isLoading = false;
  }

  /** Give up what is under way. */
  cancel(): void {
    this.#abort?.abort();
    this.isLoading = false;
  }
}

/** A resource of a component, loaded now, and again every so often while the page is seen. */
export function load<T>(
  read: (signal: AbortSignal) => Promise<T>,
  { everyMs = 0 }: { everyMs?: number } = {},
): Resource<T> {
  const made = new Resource(read);
  void made.load();
  const again = () => {
    if (!document.hidden && !made.isLoading) void made.load();
  };
  const timer = everyMs ? setInterval(again, everyMs) : undefined;
  onDestroy(() => {
    clearInterval(timer);
    made.cancel();
  });
  return made;
}
