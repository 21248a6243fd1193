/** Keys of pages: single letters, and `g` with a letter. They do nothing while somebody writes, and
 *  can be switched off (WCAG 2.1.4). On keyboards without Latin letters the place of a key counts. */
import { onDestroy } from "svelte";

const OFF_KEY = "headgate.keys-off";
const SEQUENCE_MS = 1_000;

export interface KeyBinding {
  /** `j`, `A` (with shift), `?`, `g s` (one after the other), `Enter`, `Escape`, `Mod+s` (Ctrl or ⌘). */
  key: string;
  text: string;
  run: () => void;
}

class Keys {
  isOff = $state(localStorage.getItem(OFF_KEY) === "yes");
  groups = $state.raw<{ name: string; bindings: KeyBinding[] }[]>([]);

  switch(isOff: boolean): void {
    this.isOff = isOff;
    localStorage.setItem(OFF_KEY, isOff ? "yes" : "no");
  }
}

export const keys = new Keys();
let before = "";
let beforeAt = 0;

/** The name of a pressed key, as bindings have it.
 *
 *  On a Greek keyboard the key at the place of `j` is `j`, too. */
export function keyName(event: Pick<KeyboardEvent, "key" | "code" | "shiftKey">): string {
  if (/^[\x20-\x7e]$/.test(event.key) || event.key.length > 1) return event.key;
  const letter = /^Key([A-Z])$/.exec(event.code)?.[1];
  if (!letter) return event.key;
  return event.shiftKey ? letter : letter.toLowerCase();
}

function isWriting(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function onKey(event: KeyboardEvent): void {
  const isMod = event.ctrlKey || event.metaKey;
  if (event.altKey || (keys.isOff && !isMod)) return;
  if (!isMod && (isWriting(event.target) || document.querySelector("dialog[open]"))) return;
  // Enter and space are those of the button or link that has the focus.
  if (event.key === "Enter" && event.target instanceof Element && event.target.closest("a,button"))
    return;
  const name = (isMod ? "Mod+" : "") + keyName(event);
  const sequence = Date.now() - beforeAt < SEQUENCE_MS ? `${before} ${name}` : name;
  [before, beforeAt] = [name, Date.now()];
  for (const group of [...keys.groups].reverse())
    for (const wanted of [sequence, name]) {
      const found = group.bindings.find((each) => each.key === wanted);
      if (found) {
        event.preventDefault();
        before = "";
        found.run();
        return;
      }
    }
}

window.addEventListener("keydown", onKey);

/** Keys that hold while a component is there; those of inner ones come first. */
export function bindKeys(name: string, bindings: KeyBinding[]): void {
  const group = { name, bindings };
  keys.groups = [...keys.groups, group];
  onDestroy(() => {
    keys.groups = keys.groups.filter((each) => each !== group);
  });
}
