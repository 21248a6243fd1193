import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Problem } from "./api";
import { MarkQueue, type Mark } from "./mark_queue.svelte";

const offline = new Problem(0, "Not reachable", "");

class Service {
  failing: Problem | undefined;
  state = new Map<number, Mark>();
  calls: [number[], Mark][] = [];

  send = async (positions: number[], mark: Mark): Promise<void> => {
    await Promise.resolve();
    if (this.failing) throw this.failing;
    this.calls.push([positions, mark]);
    for (const each of positions) this.state.set(each, { ...this.state.get(each), ...mark });
  };
}

describe("marks on their way", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("are sent together where they say the same", async () => {
    const service = new Service();
    const queue = new MarkQueue(service.send, () => {});
    await queue.add([1, 2, 3], { read: true });
    expect(service.calls).toEqual([[[1, 2, 3], { read: true }]]);
    expect(queue.of(1)).toEqual({});
  });

  it("wait while the service cannot be reached, and the last one counts", async () => {
    const service = new Service();
    const queue = new MarkQueue(service.send, () => {});
    service.failing = offline;
    await queue.add([1], { read: true });
    await queue.add([2], { read: true });
    await queue.add([1], { read: false, starred: true });
    expect(queue.waiting).toBe(2);
    expect(queue.of(1)).toEqual({ read: false, starred: true });
    service.failing = undefined;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(queue.waiting).toBe(0);
    expect(service.state.get(1)).toEqual({ read: false, starred: true });
    expect(service.state.get(2)).toEqual({ read: true });
  });

  it("that are refused are told of and not sent again", async () => {
    const service = new Service();
    const refused = vi.fn();
    const queue = new MarkQueue(service.send, refused);
    service.failing = new Problem(403, "Not allowed", "");
    await queue.add([1], { read: true });
    expect(refused).toHaveBeenCalledOnce();
    service.failing = undefined;
    await queue.flush();
    expect(service.calls).toEqual([]);
  });

  it("made while others are under way are sent after them", async () => {
    const service = new Service();
    const queue = new MarkQueue(service.send, () => {});
    void queue.add([1], { read: true });
    await queue.add([1], { read: false });
    expect(service.state.get(1)).toEqual({ read: false });
  });
});
