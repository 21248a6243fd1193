/** CodeMirror with our language: colours, errors, completion. Loaded only where something is
 *  written: it is larger than the rest of the console. */
import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  completionStatus,
  startCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import {
  bracketMatching,
  HighlightStyle,
  StreamLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import { setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
  ViewPlugin,
  type ViewUpdate,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { PlacedError } from "./api";
import { tokenAt, type TokenKind } from "./language";

const NAMES: Record<TokenKind, string | null> = {
  keyword: "keyword",
  name: "variableName",
  string: "string",
  number: "number",
  variable: "typeName",
  sign: "operator",
  comment: "comment",
  url: "url",
  space: null,
};

/** A text may go over lines, so what is open at the end of a line is kept. */
const language = StreamLanguage.define<{ open: string }>({
  name: "headgate",
  startState: () => ({ open: "" }),
  token(stream, state) {
    if (state.open) {
      const end = stream.string.indexOf(state.open, stream.pos);
      if (end < 0) stream.skipToEnd();
      else [stream.pos, state.open] = [end + 1, ""];
      return "string";
    }
    const token = tokenAt(stream.string, stream.pos);
    stream.pos += token.text.length;
    if (token.kind === "string" && !token.isWhole)
      state.open = { "“": "”", "‘": "’" }[token.text[0]!] ?? token.text[0]!;
    return NAMES[token.kind];
  },
  languageData: { commentTokens: { line: "--" }, closeBrackets: { brackets: ["(", "[", "'"] } },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.url], color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: tags.typeName, color: "var(--bad)" },
  { tag: tags.comment, color: "var(--text-soft)", fontStyle: "italic" },
  { tag: tags.operator, color: "var(--text-soft)" },
]);

const look = EditorView.theme({
  "&": { fontSize: "0.93rem", backgroundColor: "transparent", color: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.65" },
  ".cm-content": { padding: "0.8rem 0", caretColor: "var(--accent)", minHeight: "9rem" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  ".cm-gutters": {
    backgroundColor: "transparent",
    border: "none",
    color: "var(--text-soft)",
    paddingLeft: "0.4rem",
  },
  ".cm-activeLine": { backgroundColor: "color-mix(in oklab, var(--hover), transparent 45%)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "color-mix(in oklab, var(--accent-soft), var(--accent) 18%)" },
  ".cm-placeholder": { color: "var(--text-soft)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "none" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad)",
    textUnderlineOffset: "3px",
  },
  ".cm-tooltip": {
    border: "1px solid var(--line)",
    borderRadius: "var(--radius)",
    backgroundColor: "var(--raised)",
    boxShadow: "var(--shadow)",
    color: "var(--text)",
  },
  ".cm-tooltip-lint": { padding: "0.2rem", maxWidth: "28rem" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    fontFamily: "var(--sans)",
    maxHeight: "17rem",
    minWidth: "17rem",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": {
    display: "flex",
    alignItems: "baseline",
    gap: "0.6rem",
    padding: "0.22rem 0.7rem",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-soft)",
    color: "var(--text)",
  },
  ".cm-completionLabel": { flex: "1", fontFamily: "var(--mono)", fontSize: "0.87rem" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": {
    fontStyle: "normal",
    fontSize: "0.8rem",
    color: "var(--text-soft)",
    marginLeft: "0",
  },
});

const ASK_AGAIN_MS = 500;

/** Where typing overtakes a look for completions, as on a slow machine, CodeMirror forgets the look.
 *  So it is started once more when somebody stops and no list is shown. */
const completesAfterPause = ViewPlugin.define(
  (view) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      if (view.hasFocus && completionStatus(view.state) !== "active") startCompletion(view);
    };
    return {
      update(update: ViewUpdate) {
        if (update.docChanged) clearTimeout(timer);
        if (update.transactions.some((each) => each.isUserEvent("input.type")))
          timer = setTimeout(look, ASK_AGAIN_MS);
      },
      /** Another key, such as Escape, is another wish. */
      forget: () => clearTimeout(timer),
      destroy: () => clearTimeout(timer),
    };
  },
  {
    eventHandlers: {
      keydown() {
        this.forget();
      },
    },
  },
);

export interface EditorOptions {
  parent: HTMLElement;
  text: string;
  label: string;
  describedBy: string;
  onChange: (text: string, place: number) => void;
  onSave: () => void;
  onPreview: () => void;
  complete: (text: string, place: number) => Promise<CompletionChoice | null>;
}

export interface CompletionChoice {
  from: number;
  options: Completion[];
  /** What is still right while these are typed. */
  validFor?: RegExp;
}

export function openEditor(options: EditorOptions): EditorView {
  const state = EditorState.create({ doc: options.text, extensions: extensions(options) });
  return new EditorView({ parent: options.parent, state });
}

function extensions(options: EditorOptions): Extension[] {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
  const completions = async (context: CompletionContext): Promise<CompletionResult | null> => {
    const found = await options.complete(context.state.doc.toString(), context.pos);
    if (!found || context.aborted) return null;
    return { filter: true, ...found };
  };
  const onUpdate = EditorView.updateListener.of((update) => {
    if (update.docChanged || update.selectionSet)
      options.onChange(update.state.doc.toString(), update.state.selection.main.head);
  });
  const done = (run: () => void) => () => {
    run();
    return true;
  };
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    highlightSpecialChars(),
    highlightActiveLine(),
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    EditorView.lineWrapping,
    language,
    syntaxHighlighting(colours),
    look,
    placeholder("create feed … from … where …;"),
    autocompletion({ override: [completions], icons: false, activateOnTypingDelay: 80 }),
    completesAfterPause,
    // Tab takes a completion where one is offered, and else leaves: nobody is trapped.
    keymap.of([
      { key: "Tab", run: acceptCompletion },
      { key: "Mod-Enter", run: done(options.onPreview) },
      { key: "Mod-s", run: done(options.onSave), preventDefault: true },
      { key: "Ctrl-Space", run: startCompletion },
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...historyKeymap,
      ...defaultKeymap.filter((each) => each.key !== "Mod-Enter"),
    ]),
    EditorView.contentAttributes.of({
      "aria-label": options.label,
      "aria-describedby": options.describedBy,
      spellcheck: "false",
    }),
    onUpdate,
  ];
}

/** Where an error is: from its column to the end of the word there. */
export function showErrors(view: EditorView, errors: readonly PlacedError[]): void {
  const found: Diagnostic[] = errors.map((error) => {
    const number = Math.min(Math.max(1, error.line ?? 1), view.state.doc.lines);
    const line = view.state.doc.line(number);
    const from = Math.min(line.from + Math.max(0, (error.column ?? 1) - 1), line.to);
    const rest = view.state.doc.sliceString(from, line.to);
    const length = error.column
      ? (/^(?:[\p{L}\p{N}_$?]+|\S)/u.exec(rest)?.[0].length ?? 0)
      : rest.length;
    const start = length ? from : Math.max(line.from, from - 1);
    return {
      from: start,
      to: Math.min(line.to, from + Math.max(1, length)),
      severity: "error",
      message: error.hint ? `${error.message} — ${error.hint}` : error.message,
    };
  });
  view.dispatch(setDiagnostics(view.state, found));
}

/** Write another text, as an edit that can be undone. */
export function replaceText(view: EditorView, text: string): void {
  view.dispatch({
    changes: { from: 0, to: view.state.doc.length, insert: text },
    selection: { anchor: text.length },
  });
}

/** Set the cursor to an error and go there. */
export function goTo(view: EditorView, line: number, column: number): void {
  const place = view.state.doc.line(Math.min(Math.max(1, line), view.state.doc.lines));
  const anchor = Math.min(place.from + Math.max(0, column - 1), place.to);
  view.dispatch({ selection: { anchor }, scrollIntoView: true });
  view.focus();
}

export type { EditorView } from "@codemirror/view";
