/** The state of the river: what is shown, what is new, what was marked. */
import { tick } from "svelte";
import { api, follow, Problem, result, type Schemas } from "../../lib/api";
import { counted } from "../../lib/format";
import { MarkQueue, type Mark } from "../../lib/mark_queue.svelte";
import { UNREAD_MAX, type ReadingFeed, type ReadingItem } from "../../lib/river_items";
import { attempt, toasts } from "../../lib/toasts.svelte";
import { cardItems, keyOf, type CardItem, type RiverQuery } from "./cards";

type Arrivals = Schemas["ReadingArrivals"];

const PAGE = 50;
const NEW_MAX = 200;
const UNDO_AT_ONCE = 1_000;

export class Card {
  readonly key: string;
  readonly item: ReadingItem;
  readonly positions: number[];
  readonly feeds: string[];
  read = $state(false);
  starred = $state(false);

  constructor(from: CardItem) {
    this.key = from.key;
    this.item = from.item;
    this.positions = from.positions;
    this.feeds = from.feeds;
    [this.read, this.starred] = [from.read, from.starred];
  }

  get position(): number {
    return this.item.position;
  }
}

export class River {
  query = $state.raw<RiverQuery>({ feed: "", label: "", view: "unread", search: "" });
  cards = $state.raw<Card[]>([]);
  error = $state.raw<Problem>();
  isLoading = $state(true);
  isLoadingMore = $state(false);
  hasMore = $state(false);
  /** Of a search: how many items were looked at. */
  lookedAt = $state(0);
  /** How many have arrived that are not shown. */
  newCount = $state(0);
  /** Whether what arrives is told of; if not, the connection is being made again. */
  isLive = $state(true);
  isHeld = $state(false);
  feeds = $state.raw<ReadingFeed[]>([]);
  feedsError = $state.raw<Problem>();
  hasFeeds = $state(false);
  unread = $state(0);
  starred = $state(0);
  /** How many were marked as read here, for who has read everything. */
  readHere = $state(0);
  /** Whether anything was ever stored; not known: nothing was read yet. */
  hasRun = $state<boolean>();
  readonly queue = new MarkQueue(sendMarks, (error) => {
    toasts.show(`Not marked: ${error.message}`, { isError: true });
    void this.reload();
  });
  #items: ReadingItem[] = [];
  #next: number | undefined;
  #abort = new AbortController();
  #live = new AbortController();
  /** Behind the newest item that was read, and behind those that `feeds` counts. */
  #top = 0;
  #countedBelow = 0;

  close(): void {
    this.#abort.abort();
    this.#live.abort();
  }

  /** Show other items. */
  async open(query: RiverQuery): Promise<void> {
    this.query = query;
    this.cards = [];
    this.isHeld = false;
    await this.reload();
  }

  async reload(): Promise<void> {
    this.#abort.abort();
    this.#live.abort();
    const abort = (this.#abort = new AbortController());
    this.isLoading = true;
    const counts = this.readFeeds();
    try {
      const page = await this.#read(undefined, PAGE, abort.signal);
      if (abort.signal.aborted) return;
      this.error = undefined;
      this.newCount = 0;
      this.#show(page.items, page.next, page.looked_at);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = problemOf(error);
    }
    this.isLoading = false;
    await counts;
    if (!abort.signal.aborted && !this.error) this.#follow();
  }

  cancel(): void {
    this.#abort.abort();
    this.isLoading = false;
    this.isHeld = true;
  }

  async more(): Promise<void> {
    if (this.isLoadingMore || this.#next === undefined) return;
    const { signal } = this.#abort;
    this.isLoadingMore = true;
    try {
      const page = await this.#read(this.#next, PAGE, signal);
      if (!signal.aborted)
        this.#show(
          [...this.#items, ...page.items],
          page.next,
          this.lookedAt + (page.looked_at ?? 0),
        );
    } catch (error) {
      if (!signal.aborted)
        toasts.show(`No further items: ${problemOf(error).message}`, { isError: true });
    }
    this.isLoadingMore = false;
  }

  /** Put what has arrived on top. `prepare` is called just before, with the keys of the cards that
   *  come there: some of them may be shown already, further down. */
  async showNew(prepare: (keys: Set<string>) => void = () => {}): Promise<void> {
    const { signal } = this.#abort;
    const top = this.#top;
    await attempt("New items cannot be read", async () => {
      let page = await this.#read(undefined, Math.min(this.newCount + PAGE, NEW_MAX), signal);
      const isNew = (each: ReadingItem) => each.position >= top;
      if (page.items.every(isNew) && page.next) page = await this.#read(undefined, NEW_MAX, signal);
      if (signal.aborted) return;
      prepare(new Set(page.items.filter(isNew).map(keyOf)));
      this.newCount = 0;
      if (page.items.every(isNew) && page.next)
        this.#show(page.items, page.next, page.looked_at); // too many to be put on top
      else this.#show([...page.items.filter(isNew), ...this.#items], this.#next, this.lookedAt);
    });
    await tick();
  }

  async #read(before: number | undefined, limit: number, signal: AbortSignal) {
    const { feed, label, view, search } = this.query;
    const query = {
      ...(feed && { feed }),
      ...(label && { label }),
      // Who searches wants to find what was read, too.
      ...(view === "unread" && !search && { unread: true }),
      ...(view === "starred" && { starred: true }),
      ...(search && { words: search }),
      ...(before !== undefined && { before }),
      limit,
    };
    return result(api.GET("/v1/reading/items", { params: { query }, signal }));
  }

  #show(items: ReadingItem[], next?: number | null, lookedAt?: number | null): void {
    const known = new Map(this.cards.map((each) => [each.key, each]));
    this.#items = items;
    this.#next = next ?? undefined;
    this.hasMore = this.#next !== undefined;
    this.lookedAt = lookedAt ?? 0;
    this.#top = Math.max(this.#top, ...items.map((each) => each.position + 1));
    this.cards = cardItems(items).map((each) => {
      const card = known.get(each.key);
      return card && card.positions.length === each.positions.length ? card : this.#card(each);
    });
  }

  /** A card with the marks that are still on their way. */
  #card(from: CardItem): Card {
    const card = new Card(from);
    for (const each of from.positions) {
      const { read, starred } = this.queue.of(each);
      card.read = read ?? card.read;
      card.starred = starred ?? card.starred;
    }
    return card;
  }

  /** Whether what arrives belongs to what is shown. */
  get #isLiveView(): boolean {
    return this.query.view !== "starred" && !this.query.search;
  }

  // --- what arrives ------------------------------------------------------------------------------

  #follow(): void {
    this.#live.abort();
    const { signal } = (this.#live = new AbortController());
    const { feed, label } = this.query;
    let position = Math.max(this.#top, this.cards.length ? 0 : this.#countedBelow);
    const path = () => {
      const query = new URLSearchParams({ since: String(position) });
      if (feed) query.set("feed", feed);
      if (label) query.set("label", label);
      return `/v1/reading/live?${query}`;
    };
    const on = {
      item: (line: Arrivals) => {
        this.newCount += line.items;
        if (position >= this.#countedBelow) this.#count(line.feeds, line.items);
        else void this.readFeeds();
        position = line.position;
        // Where there is nothing to read, nothing can jump.
        if (this.newCount && !this.cards.length && this.#isLiveView) void this.showNew();
      },
      state: (isOpen: boolean) => (this.isLive = isOpen),
    };
    follow<Arrivals>(path, signal, on).catch(() => (this.isLive = false));
  }

  #count(arrived: Record<string, number>, items: number): void {
    this.feeds = this.feeds.map((each) => {
      const more = arrived[each.name] ?? 0;
      return more ? { ...each, unread: Math.min(each.unread + more, UNREAD_MAX) } : each;
    });
    // Of one feed or label, that is how many came there; of all, see the counts of the service.
    if (!this.query.feed && !this.query.label)
      this.unread = Math.min(this.unread + items, UNREAD_MAX);
  }

  async readFeeds(): Promise<void> {
    try {
      const found = await result(api.GET("/v1/reading/feeds"));
      [this.feeds, this.unread, this.starred] = [found.feeds, found.unread, found.starred];
      this.#countedBelow = found.position;
      this.hasRun = found.position > 0;
      [this.hasFeeds, this.feedsError] = [true, undefined];
    } catch (error) {
      this.feedsError = problemOf(error);
    }
  }

  // --- marks -------------------------------------------------------------------------------------

  setRead(cards: Card[], isRead: boolean): void {
    const changed = cards.filter((each) => each.read !== isRead);
    if (!changed.length) return;
    for (const card of changed) card.read = isRead;
    this.readHere += isRead ? changed.length : -changed.length;
    this.#recount(changed, isRead ? -1 : 1);
    void this.queue.add(
      changed.flatMap((each) => each.positions),
      { read: isRead },
    );
  }

  setStarred(card: Card, isStarred: boolean): void {
    card.starred = isStarred;
    this.starred += isStarred ? 1 : -1;
    void this.queue.add(isStarred ? [card.position] : card.positions, { starred: isStarred });
  }

  #recount(cards: Card[], step: number): void {
    const changes = new Map<string, number>();
    for (const card of cards)
      for (const name of card.feeds) changes.set(name, (changes.get(name) ?? 0) + step);
    this.feeds = this.feeds.map((each) => {
      const change = changes.get(each.name) ?? 0;
      if (!change || each.unread >= UNREAD_MAX) return each;
      return { ...each, unread: Math.max(0, each.unread + change) };
    });
    if (this.unread < UNREAD_MAX) this.unread = Math.max(0, this.unread + step * cards.length);
  }

  /** Mark a card and those above it, with a way back. */
  readAbove(card: Card): void {
    const above = this.cards.slice(0, this.cards.indexOf(card) + 1).filter((each) => !each.read);
    this.setRead(above, true);
    toasts.show(`${counted(above.length, "item")} marked as read.`, {
      action: { text: "Undo", run: () => this.setRead(above, false) },
    });
  }

  /** Mark everything that is chosen, also what is not loaded, with a way back: the service says
   *  first which items that are. What arrives meanwhile stays unread. */
  async readAll(): Promise<void> {
    const { feed, label } = this.query;
    const chosen = { ...(feed && { feed }), ...(label && { label }) };
    await attempt("Not marked as read", async () => {
      const below = Math.max(this.#top, this.#countedBelow);
      const { positions, complete } = await result(
        api.GET("/v1/reading/positions", {
          params: { query: { ...chosen, unread: true, before: below } },
        }),
      );
      await this.queue.flush();
      await api.POST("/v1/reading/read-all", { body: { ...chosen, below } });
      for (const card of this.cards) card.read = true;
      this.readHere += positions.length;
      void this.readFeeds();
      const undo = { text: "Undo", run: () => void this.#unreadAll(positions) };
      const text = complete
        ? `${counted(positions.length, "item")} marked as read.`
        : `More than ${counted(positions.length, "item")} marked as read.`;
      toasts.show(text, positions.length && complete ? { action: undo } : {});
    });
  }

  async #unreadAll(positions: number[]): Promise<void> {
    for (let start = 0; start < positions.length; start += UNDO_AT_ONCE)
      void this.queue.add(positions.slice(start, start + UNDO_AT_ONCE), { read: false });
    await this.queue.flush();
    const unread = new Set(positions);
    for (const card of this.cards)
      if (card.positions.some((each) => unread.has(each))) card.read = false;
    this.readHere -= positions.length;
    await this.readFeeds();
  }
}

async function sendMarks(positions: number[], mark: Mark): Promise<void> {
  await api.POST("/v1/reading/marks", { body: { positions, ...mark }, keepalive: true });
}

const problemOf = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem(-1, "Error", String(error));
