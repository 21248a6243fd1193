/** Why a feed has an item, as far as a reader wants to know it: one line, and the words to mark. */

/** A condition of a feed with its answer, as `/v1/feeds/{name}/why` has it in `data`. */
export interface Condition {
  answer: "yes" | "no" | "open";
  condition: string;
  note?: string;
  parts?: Condition[];
}

export interface WhyData {
  branches?: Condition[];
}

/** Words that a condition has found, in one attribute or (`""`) in any. */
export interface FoundWords {
  attribute: string;
  words: string[];
}

const CONTAINS = /^(?:(.*?) )?contains (?:phrase )?'((?:[^'\\]|''|\\.)*)'$/s;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
/** Scripts that write no spaces: there a text is found inside of a run of letters. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

export const fold = (text: string): string => text.normalize("NFKC").toLowerCase();

export const wordsIn = (text: string): string[] => (text.match(WORD) ?? []).map(fold);

/** The branches that say yes; where only a join or an operator could tell, those that are open. */
function matching(why: WhyData): Condition[] {
  const branches = why.branches ?? [];
  const sure = branches.filter((each) => each.answer === "yes");
  return sure.length ? sure : branches.filter((each) => each.answer === "open");
}

/** The words that conditions of `contains` have found; not those that must be missing. */
export function foundWords(why: WhyData): FoundWords[] {
  const found: FoundWords[] = [];
  const visit = (each: Condition): void => {
    if (each.answer === "no" || each.condition === "not") return;
    const match = CONTAINS.exec(each.condition);
    if (match) {
      const text = match[2]!.replace(/''/g, "'").replace(/\\(.)/gs, "$1");
      found.push({ attribute: match[1] ?? "", words: wordsIn(text) });
    }
    each.parts?.forEach(visit);
  };
  matching(why).forEach(visit);
  return found;
}

/** The words to mark in one attribute. */
export function wordsFor(found: FoundWords[], ...attributes: string[]): Set<string> {
  const own = found.filter((each) => !each.attribute || attributes.includes(each.attribute));
  return new Set(own.flatMap((each) => each.words));
}

/** The conditions that decided, on one line. */
export function reasonOf(why: WhyData): string {
  const text = (each: Condition): string => {
    const parts = (each.parts ?? []).map(text);
    if (each.condition === "not") return `not ${parts.join(" and ")}`;
    if (each.condition === "one of")
      return (each.parts ?? [])
        .filter((part) => part.answer !== "no")
        .map(text)
        .join(" or ");
    if (each.condition === "all of") return parts.join(" and ");
    if (each.condition.startsWith("⋈")) return "a join has found something to it";
    return each.condition;
  };
  const branch = matching(why)[0];
  if (!branch) return "";
  const parts = (branch.parts ?? []).map(text);
  return parts.join(" and ") || `everything of ${branch.condition}`;
}

export interface Segment {
  text: string;
  isMarked: boolean;
}

/** A text cut where marked words begin and end. */
export function segments(text: string, words: ReadonlySet<string>): Segment[] {
  if (!words.size) return text ? [{ text, isMarked: false }] : [];
  const inside = [...words].filter((each) => UNSPACED.test(each));
  const found: Segment[] = [];
  let done = 0;
  const mark = (start: number, end: number): void => {
    if (start > done) found.push({ text: text.slice(done, start), isMarked: false });
    found.push({ text: text.slice(start, end), isMarked: true });
    done = end;
  };
  for (const match of text.matchAll(WORD)) {
    const run = match[0];
    if (words.has(fold(run))) mark(match.index, match.index + run.length);
    else
      for (const part of inside)
        for (let at = run.indexOf(part); at >= 0; at = run.indexOf(part, at + part.length))
          if (match.index + at >= done) mark(match.index + at, match.index + at + part.length);
  }
  if (done < text.length) found.push({ text: text.slice(done), isMarked: false });
  return found;
}
