/** The language of statements as the console needs it: words and signs, statements, what is being
 *  written at a place. Whether a statement is right is for the service to say. */

export type TokenKind =
  "keyword" | "name" | "string" | "number" | "variable" | "sign" | "comment" | "url" | "space";

export interface Token {
  kind: TokenKind;
  text: string;
  /** Offset of the first character. */
  at: number;
  /** False: a text that is not closed yet. */
  isWhole: boolean;
}

const KEYWORDS = new Set(
  (
    "register create advertise subscribe unsubscribe renew drop show explain feed stream table documents " +
    "operator from as apply where join last on with match changes keep cost selectivity and or not between " +
    "in is present contains phrase similar starts matches references extends shares-link window true false " +
    "to output every for at site"
  ).split(" "),
);

/** In this order; each is tried at a place. Quotes may be of four kinds, and be left open. */
const PATTERNS: [TokenKind, RegExp][] = [
  ["space", /\s+/y],
  ["comment", /--[^\n]*/y],
  ["url", /[a-z][a-z0-9+.-]{0,15}:\/\/[^\s;'"“”‘’()]*/iy],
  ["string", /'(?:[^']|'')*'|"(?:[^"]|"")*"|“[^”]*”|‘[^’]*’|['"“‘][^]*/y],
  ["name", /`[^`\n]*`?/y],
  ["variable", /[$?][\p{L}_][\p{L}\p{N}_]*/uy],
  ["number", /(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?/iy],
  ["keyword", /shares-link(?![\p{L}\p{N}_])/iuy],
  ["name", /[\p{L}_][\p{L}\p{M}\p{N}_]*/uy],
  ["sign", /<=|>=|<>|!=|\.\.\.|\/\/|[^]/uy],
];
const CLOSED = /^(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|“[^”]*”|‘[^’]*’|`[^`\n]+`)$/;

/** The token at a place, which the text must reach beyond. */
export function tokenAt(text: string, at: number): Token {
  for (const [kind, pattern] of PATTERNS) {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (!found) continue;
    const isKeyword = kind === "name" && KEYWORDS.has(found.toLowerCase());
    const isQuoted = kind === "string" || found.startsWith("`");
    return {
      kind: isKeyword ? "keyword" : kind,
      text: found,
      at,
      isWhole: !isQuoted || CLOSED.test(found),
    };
  }
  throw new Error("the last pattern takes any character");
}

/** All tokens, spaces included: their texts put together are the text. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; at += tokens.at(-1)!.text.length)
    tokens.push(tokenAt(text, at));
  return tokens;
}

export interface StatementText {
  text: string;
  at: number;
  end: number;
  /** Without spaces and comments. */
  tokens: Token[];
}

/** The statements of a script, each with its `;`. */
export function statements(script: string): StatementText[] {
  const found: StatementText[] = [];
  let tokens: Token[] = [];
  let start = 0;
  const close = (end: number) => {
    if (tokens.length) found.push({ text: script.slice(start, end), at: start, end, tokens });
    [tokens, start] = [[], end];
  };
  for (const token of tokenize(script)) {
    if (token.kind === "space" || token.kind === "comment") continue;
    if (!tokens.length) start = token.at;
    tokens.push(token);
    if (token.kind === "sign" && token.text === ";") close(token.at + 1);
  }
  close(script.length);
  return found;
}

const isWord = (token: Token | undefined, word: string) =>
  token?.kind === "keyword" && token.text.toLowerCase() === word;

/** The name that a statement creates a feed under; nothing if it does something else. */
export function feedName(statement: StatementText): string | undefined {
  const [create, feed, ...rest] = statement.tokens;
  if (!isWord(create, "create") || !isWord(feed, "feed")) return undefined;
  const from = rest.findIndex((token) => isWord(token, "from"));
  const name = rest.slice(0, from < 0 ? 1 : from).map((token) => plainName(token.text));
  return name.join("") || undefined;
}

/** The feed that is being written: that of the statement at a place, else the first one. */
export function feedAt(script: string, place: number): StatementText | undefined {
  const feeds = statements(script).filter((each) => feedName(each));
  return feeds.find((each) => each.at <= place && place <= each.end) ?? feeds[0];
}

export function plainName(written: string): string {
  return /^`.*`$/.test(written) ? written.slice(1, -1) : written;
}

/** A name as statements have it. */
export function writeName(name: string): string {
  const parts = /^[^.]+\.[^.]+$/.test(name) ? name.split(".") : [name];
  return parts
    .map((each) =>
      /^[\p{L}_][\p{L}\p{N}_]*$/u.test(each) && !KEYWORDS.has(each.toLowerCase())
        ? each
        : `\`${each}\``,
    )
    .join(".");
}

export const writeText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** What a quoted text says. */
export function readText(written: string): string {
  const quote = written[0] ?? "";
  const ends: Record<string, string> = { "“": "”", "‘": "’" };
  const end = ends[quote] ?? quote;
  const inner = written.slice(1, written.length > 1 && written.endsWith(end) ? -1 : undefined);
  return end === quote ? inner.replaceAll(quote + quote, quote) : inner;
}

/** The names behind `from`, up to the next clause. */
export function fromNames(tokens: Token[]): string[] {
  const start = tokens.findIndex((token) => isWord(token, "from"));
  if (start < 0) return [];
  const names: string[] = [];
  let isJoined = false;
  for (const token of tokens.slice(start + 1)) {
    if (["where", "join", "match"].some((word) => isWord(token, word))) break;
    if (token.kind === "sign" && token.text === ".") {
      isJoined = names.length > 0;
    } else if (token.kind === "name") {
      if (isJoined) names[names.length - 1] += `.${plainName(token.text)}`;
      else names.push(plainName(token.text));
      isJoined = false;
    }
  }
  return [...new Set(names)];
}

/** The words that conditions look for in texts, to be marked in what has matched; not those that are
 *  negated. */
export function wantedWords(statement: string): string[] {
  const tokens = tokenize(statement).filter(({ kind }) => kind !== "space" && kind !== "comment");
  const where = tokens.findIndex((token) => isWord(token, "where"));
  const words = new Set<string>();
  let [isNegated, isText] = [false, false];
  for (const token of tokens.slice(where + 1)) {
    if (isWord(token, "not")) isNegated = true;
    if (["contains", "similar", "starts"].some((word) => isWord(token, word))) isText = true;
    if (isWord(token, "and") || isWord(token, "or")) [isNegated, isText] = [false, false];
    if (token.kind === "string" && token.isWhole && isText && !isNegated)
      for (const word of wordsOf(readText(token.text))) words.add(word);
  }
  return [...words];
}

export const wordsOf = (text: string): string[] =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/** A statement on one line, without its first words: `from News where title contains 'rock'`. */
export function gist(definition: string): string {
  const line = definition.replace(/\s+/g, " ").trim().replace(/;$/, "");
  return line.replace(/^create feed (?:`[^`]*`|[^\s]+) /i, "");
}
