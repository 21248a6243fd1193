/** The document in which the markup of an item is shown (components/ContentFrame.svelte).
 *
 *  The markup was sanitised by the service. Here nothing is trusted again: it is parsed in a document
 *  that loads and runs nothing, pictures are taken out unless they are wanted, words are marked, and
 *  the result gets a policy of its own that allows styles with the nonce of the page, and pictures. */
import { segments } from "./match_words";

export interface FrameContent {
  html: string;
  words: ReadonlySet<string>;
  hasPictures: boolean;
}

const STYLE = `
:root { font: 16px/1.6 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  color: light-dark(#15201f, #e4ebec); background: transparent; overflow-wrap: anywhere; }
body { margin: 0; padding: 1px 0; overflow-x: auto; overflow-y: hidden; }
body > :first-child { margin-top: 0; } body > :last-child { margin-bottom: 0; }
a { color: light-dark(#0b6e75, #4fc3c1); text-underline-offset: 0.15em; }
mark { background: light-dark(#ffe9a8, #5c4a10); color: light-dark(#3d2f00, #ffecb3);
  border-radius: 3px; padding: 0 0.1em; }
img, video, svg { max-width: 100%; max-height: 26rem; height: auto; border-radius: 6px; }
pre, code { font: 0.9em ui-monospace, "DejaVu Sans Mono", monospace; }
pre { overflow-x: auto; padding: 0.7rem; border-radius: 6px; background: light-dark(#eef2f2, #1f2b2f); }
blockquote { margin: 1em 0; padding-left: 1rem; border-left: 3px solid light-dark(#dfe5e5, #2a373b);
  color: light-dark(#516062, #a3b1b4); }
h1, h2, h3 { font-size: 1.1rem; line-height: 1.3; }
table { border-collapse: collapse; max-width: 100%; }
td, th { padding: 0.3rem 0.6rem; border: 1px solid light-dark(#dfe5e5, #2a373b); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; }
dt { color: light-dark(#516062, #a3b1b4); } dd { margin: 0; }
`;

/** How many pictures the markup has. */
export function countPictures(html: string): number {
  return parsed(html).images.length;
}

export function frameDocument(
  content: FrameContent,
  { nonce, scheme }: { nonce: string; scheme: string },
): string {
  const body = parsed(content.html).body;
  if (!content.hasPictures) for (const each of body.querySelectorAll("img")) each.remove();
  markWords(body, content.words);
  const pictures = content.hasPictures ? "https: http: data:" : "'none'";
  const policy =
    `default-src 'none'; style-src 'nonce-${nonce}'; img-src ${pictures}; ` +
    "base-uri 'none'; form-action 'none'";
  return (
    `<!doctype html><html><head><meta charset="utf-8">` +
    `<meta http-equiv="Content-Security-Policy" content="${policy}">` +
    `<meta name="referrer" content="no-referrer"><base target="_blank">` +
    `<style nonce="${nonce}">:root { color-scheme: ${scheme}; }${STYLE}</style></head>` +
    `<body>${body.innerHTML}</body></html>`
  );
}

/** Neither scripts nor pictures of such a document are loaded. */
function parsed(html: string): Document {
  return new DOMParser().parseFromString(html, "text/html");
}

function markWords(body: HTMLElement, words: ReadonlySet<string>): void {
  if (!words.size) return;
  const walker = body.ownerDocument.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  for (const text of texts) {
    const parts = segments(text.data, words);
    if (!parts.some((each) => each.isMarked)) continue;
    text.replaceWith(
      ...parts.map((each) => {
        if (!each.isMarked) return each.text;
        const mark = body.ownerDocument.createElement("mark");
        mark.textContent = each.text;
        return mark;
      }),
    );
  }
}
