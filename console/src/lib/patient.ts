/** A call that is asked again while the service says that it is busy. */
import { Problem } from "./api";

const BUSY = [429, 503];
const PAUSE_MS = 1_000;
const TRIES = 5;

export async function patient<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      const isBusy = error instanceof Problem && BUSY.includes(error.status);
      if (!isBusy || tries === TRIES || signal.aborted) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
  }
}
