/** Marks of items (read, starred) on their way to the service.
 *
 *  A mark is shown at once and sent behind it. What cannot be sent now waits here and is sent again
 *  with growing pauses, or when the browser is online again; marks are idempotent, so a second time
 *  does no harm. Of two marks of an item the later one counts. */
import { Problem } from "./api";

export interface Mark {
  read?: boolean;
  starred?: boolean;
}

export type SendMarks = (positions: number[], mark: Mark) => Promise<void>;

const AT_ONCE = 1_000;
const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 60_000;

export class MarkQueue {
  /** How many items wait, because the service could not be reached. */
  waiting = $state(0);
  #marks = new Map<number, Mark>();
  #sending: Promise<void> | undefined;
  #pause = PAUSE_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #send: SendMarks;
  #refused: (error: Problem) => void;

  /** `refused` is told of marks that the service will not take, so that nobody believes in them. */
  constructor(send: SendMarks, refused: (error: Problem) => void) {
    this.#send = send;
    this.#refused = refused;
  }

  add(positions: Iterable<number>, mark: Mark): Promise<void> {
    for (const each of positions) this.#marks.set(each, { ...this.#marks.get(each), ...mark });
    return this.flush();
  }

  /** What was marked here of an item and is not yet known to the service. */
  of(position: number): Mark {
    return this.#marks.get(position) ?? {};
  }

  /** Send what waits; resolved when nothing is under way any more. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined));
    return this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#marks.size) {
      const [positions, mark] = this.#next();
      try {
        await this.#send(positions, mark);
        this.#pause = PAUSE_MS;
        this.#done(positions, mark);
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(-1, "Error", String(error));
        if (isPassing(problem)) return this.#later();
        this.#done(positions, mark);
        this.#refused(problem);
      }
    }
    this.waiting = 0;
  }

  /** The oldest mark, with all others that say the same. */
  #next(): [number[], Mark] {
    const [mark] = this.#marks.values();
    const same = [...this.#marks].filter(
      ([, each]) => each.read === mark!.read && each.starred === mark!.starred,
    );
    return [same.slice(0, AT_ONCE).map(([position]) => position), mark!];
  }

  /** Forget what was sent, unless it was marked otherwise meanwhile. */
  #done(positions: number[], sent: Mark): void {
    for (const each of positions) {
      const now = this.#marks.get(each);
      if (now && now.read === sent.read && now.starred === sent.starred) this.#marks.delete(each);
    }
  }

  #later(): void {
    this.waiting = this.#marks.size;
    this.#timer = setTimeout(() => void this.flush(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, PAUSE_MAX_MS);
  }
}

const isPassing = (problem: Problem): boolean =>
  problem.isUnreachable || problem.status === 429 || problem.status >= 500;
