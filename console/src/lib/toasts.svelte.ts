/** Short notices of what was done, with a way back where there is one. They are read out politely. */

export interface Toast {
  id: number;
  text: string;
  isError: boolean;
  action?: { text: string; run: () => void } | undefined;
}

const SHOWN_MS = 8_000;
let last = 0;

class Toasts {
  list = $state.raw<Toast[]>([]);

  show(text: string, options: { isError?: boolean; action?: Toast["action"] } = {}): void {
    const toast = {
      id: ++last,
      text,
      isError: options.isError ?? false,
      action: options.action,
    };
    this.list = [...this.list.slice(-2), toast];
    setTimeout(() => this.hide(toast.id), SHOWN_MS);
  }

  hide(id: number): void {
    this.list = this.list.filter((each) => each.id !== id);
  }
}

export const toasts = new Toasts();

/** Run something that a person asked for; what fails is said. Whether it was done. */
export async function attempt(what: string, run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    toasts.show(`${what}: ${reason}`, { isError: true });
    return false;
  }
}
