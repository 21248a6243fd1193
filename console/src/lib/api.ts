/** The one way to the service: typed calls, problems as errors, lines of a live stream.
 *
 *  A page has a session in a cookie that scripts cannot see. The API takes tokens, never a cookie, so
 *  the page asks for a token of its session, for one tenant, and keeps it in memory only.
 */
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

export interface PlacedError {
  message: string;
  line?: number;
  column?: number;
  hint?: string;
}

/** What the service answers instead of a result (RFC 9457), or that it cannot be reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
    readonly errors: PlacedError[] = [],
  ) {
    super(detail || title);
  }

  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

export interface Session {
  account: string;
  tenants: Record<string, string[]>;
}

const TENANT_KEY = "headgate.tenant";
let token = "";
let waiting: Promise<void> | undefined;
let tenant = "";

export async function openSession(): Promise<Session> {
  const session = await json<Session>("/session");
  const names = Object.keys(session.tenants).sort();
  const last = localStorage.getItem(TENANT_KEY) ?? "";
  tenant = names.includes(last) ? last : (names[0] ?? "");
  if (tenant) await renewToken();
  return session;
}

export function currentTenant(): string {
  return tenant;
}

/** Act for another tenant: the page starts anew, so that nothing of the last one stays. */
export function chooseTenant(name: string): void {
  localStorage.setItem(TENANT_KEY, name);
  location.assign("/");
}

async function renewToken(): Promise<void> {
  waiting ??= json<{ token: string }>("/session/token", { tenant })
    .then((answer) => {
      token = answer.token;
    })
    .finally(() => {
      waiting = undefined;
    });
  await waiting;
}

async function json<T>(path: string, body?: unknown): Promise<T> {
  const request: RequestInit =
    body === undefined
      ? {}
      : {
          method: "POST",
          body: JSON.stringify(body),
          headers: { "content-type": "application/json" },
        };
  const answer = await reach(new Request(path, request));
  if (answer.status === 401) signIn();
  if (!answer.ok) throw await problemOf(answer);
  return (await answer.json()) as T;
}

/** Leave for the page that asks who somebody is; it leads back to this one. */
export function signIn(): never {
  const here = location.pathname + location.search;
  location.assign(`/sign-in?next=${encodeURIComponent(here)}`);
  throw new Problem(401, "Signed out", "You are signed out.");
}

async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "Not reachable", "The service cannot be reached.");
  }
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const { title, detail, errors } = (await answer.json()) as Partial<Problem> & {
      detail?: string;
    };
    return new Problem(answer.status, title ?? answer.statusText, detail ?? "", errors ?? []);
  } catch {
    return new Problem(answer.status, answer.statusText, "The service cannot answer.");
  }
}

/** A call with the token of the session; a token that has ended is renewed once. */
async function call(request: Request): Promise<Response> {
  const again = request.clone();
  request.headers.set("authorization", `Bearer ${token}`);
  const answer = await reach(request);
  if (answer.status !== 401) return answer;
  await renewToken();
  again.headers.set("authorization", `Bearer ${token}`);
  return reach(again);
}

const problems: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await problemOf(response);
  },
};

/** Typed calls: `api.GET("/v1/feeds/{name}", {params: {path: {name}}})`. They throw a Problem. */
export const api = createClient<paths>({ fetch: call });
api.use(problems);

/** The result of a call: `await result(api.GET(…))`. */
export async function result<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

/** What a stream has, line by line, until it ends or is aborted. */
export async function* lines<T>(path: string, signal: AbortSignal): AsyncGenerator<T> {
  const url = new URL(path, location.origin);
  const headers = { accept: "application/x-ndjson" };
  const answer = await call(new Request(url, { headers, signal }));
  if (!answer.ok) throw await problemOf(answer);
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop()!;
    for (const each of parts) if (each) yield JSON.parse(each) as T;
  }
}

const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/** Follow a stream for good: after a break it is opened again, with growing pauses. `path` is asked
 *  each time, so that it can name the position at which to go on. */
export async function follow<T>(
  path: () => string,
  signal: AbortSignal,
  on: { item: (item: T) => void; state?: (isOpen: boolean) => void },
): Promise<void> {
  let pause = PAUSE_MS;
  while (!signal.aborted) {
    try {
      on.state?.(true);
      for await (const item of lines<T>(path(), signal)) {
        pause = PAUSE_MS;
        on.item(item);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && [403, 404].includes(error.status)) throw error;
    }
    on.state?.(false);
    await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random())));
    pause = Math.min(2 * pause, PAUSE_MAX_MS);
  }
}
