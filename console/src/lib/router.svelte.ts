/** The address is the state: pages read it, links and `go` change it, reloading keeps it. */

class Route {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));

  /** The parts of the path, decoded: `/river/Big%20news` is ["river", "Big news"]. */
  get parts(): string[] {
    return this.path.split("/").filter(Boolean).map(decodeURIComponent);
  }

  read(): void {
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
  }
}

export const route = new Route();

/** The address of a page: `address("river", "Big news", {unread: "true"})`. */
export function address(...parts: (string | number | Record<string, string>)[]): string {
  const names = parts.filter((each) => typeof each !== "object");
  const query = new URLSearchParams();
  for (const each of parts)
    if (typeof each === "object")
      for (const [name, value] of Object.entries(each)) if (value) query.set(name, value);
  const path = "/" + names.map((each) => encodeURIComponent(each)).join("/");
  return query.size ? `${path}?${query}` : path;
}

export function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  route.read();
  if (!replace) window.scrollTo(0, 0);
}

/** Follow links of the console without loading it anew. Others are the browser's: links of the
 *  service that are no pages (a feed's document) have `data-outside`. */
export function followLinks(): () => void {
  const onClick = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey)
      return;
    const link = (event.target as Element).closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || "outside" in link.dataset) return;
    const url = new URL(link.href, location.href);
    if (url.origin !== location.origin || (url.hash && url.pathname === location.pathname)) return;
    event.preventDefault();
    go(url.pathname + url.search);
  };
  const onBack = () => route.read();
  document.addEventListener("click", onClick);
  window.addEventListener("popstate", onBack);
  return () => {
    document.removeEventListener("click", onClick);
    window.removeEventListener("popstate", onBack);
  };
}
