/** A long list that is read page by page, as far as somebody scrolls, and read anew as a whole. */
import { load, type Resource } from "./resource.svelte";
import { attempt } from "./toasts.svelte";

const PAGE = 200;
const PAGE_MAX = 1_000;

export interface ListPage {
  entries: unknown[];
  next?: string | null;
}

export interface Pages<P extends ListPage> {
  list: Resource<P>;
  /** Read the next page, if there is one. */
  more: () => Promise<void>;
  /** Read another list in its place: from its beginning. */
  restart: () => Promise<void>;
}

/** The list of a component. `read` gets the `next` of the page before, empty for the first one. */
export function loadPages<P extends ListPage>(
  read: (after: string, limit: number, signal?: AbortSignal) => Promise<P>,
  { everyMs = 0 }: { everyMs?: number } = {},
): Pages<P> {
  let wanted = PAGE;
  let isReading = false;

  const list = load(
    async (signal) => {
      let page = await read("", Math.min(wanted, PAGE_MAX), signal);
      while (page.next && page.entries.length < wanted) {
        const following = await read(page.next, PAGE_MAX, signal);
        page = joined(page, following);
      }
      return page;
    },
    { everyMs },
  );

  async function more(): Promise<void> {
    const before = list.value;
    if (isReading || !before?.next) return;
    isReading = true;
    await attempt("The next entries", async () => {
      const following = await read(before.next!, PAGE);
      if (list.value === before) list.value = joined(before, following);
      wanted = Math.max(wanted, list.value?.entries.length ?? 0);
    });
    isReading = false;
  }

  async function restart(): Promise<void> {
    wanted = PAGE;
    await list.load();
  }

  return { list, more, restart };
}

function joined<P extends ListPage>(page: P, following: P): P {
  return { ...following, entries: [...page.entries, ...following.entries] };
}
