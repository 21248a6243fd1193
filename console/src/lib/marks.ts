/** Items as lines: what they are called, and the part of a text around a word. */
import { wordsOf } from "./language";

const CUT = 280;

/** A long text around the first word that is marked. */
export function excerpt(text: string, words: readonly string[], length = CUT): string {
  const flat = text.replace(/\s+/g, " ").trim();
  if (flat.length <= length) return flat;
  const wanted = new Set(words);
  let first = 0;
  for (const found of flat.matchAll(/[\p{L}\p{M}\p{N}]+/gu))
    if (wanted.has(wordsOf(found[0])[0] ?? "")) {
      first = found.index;
      break;
    }
  const start = first > length * 0.7 ? first - Math.floor(length / 3) : 0;
  const end = start + length;
  return (start ? "…" : "") + flat.slice(start, end).trim() + (end < flat.length ? "…" : "");
}

/** What an item is called, and a text of it: feeds of the web have HTML in their descriptions, of
 *  which the text is shown. */
export function headOf(attributes: Record<string, unknown>): { title: string; text: string } {
  const texts = Object.entries(attributes).filter(
    (pair): pair is [string, string] => typeof pair[1] === "string",
  );
  const named = (names: string[]) =>
    names.map((name) => texts.find(([each]) => each === name)?.[1]).find(Boolean) ?? "";
  const title = plainText(named(["title", "headline", "subject", "name"]));
  const text = plainText(named(["description", "summary", "content", "document", "text"]));
  if (title || text) return { title: title || excerpt(text, [], 90), text: title ? text : "" };
  const line = Object.entries(attributes)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(" · ");
  return { title: line, text: "" };
}

/** The text of some HTML: its tags are left out, and nothing of it is loaded or run. */
export function plainText(html: string): string {
  if (!/[<&]/.test(html)) return html;
  if (typeof DOMParser === "undefined") return html.replace(/<[^>]*>/g, " ");
  const body = new DOMParser().parseFromString(html, "text/html").body;
  for (const each of body.querySelectorAll("script, style, template")) each.remove();
  return body.textContent ?? "";
}
