/** Whether pictures of items are loaded. Loading one tells its publisher who reads, and when; so they
 *  are shown on demand, for one item, or always for a source. Kept in this browser. */
import { SvelteSet } from "svelte/reactivity";

const KEY = "headgate.pictures";

class Pictures {
  #sources = new SvelteSet<string>(stored());
  #items = new SvelteSet<number>();

  areShown(position: number, source: string): boolean {
    return this.#sources.has(source) || this.#items.has(position);
  }

  isAlways(source: string): boolean {
    return this.#sources.has(source);
  }

  show(position: number): void {
    this.#items.add(position);
  }

  always(source: string, isAlways: boolean): void {
    if (isAlways) this.#sources.add(source);
    else this.#sources.delete(source);
    localStorage.setItem(KEY, JSON.stringify([...this.#sources]));
  }
}

function stored(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

export const pictures = new Pictures();
