/** Deliveries in words: states, targets, what replaying would do. */
import type { Schemas } from "./api";
import type { IconName } from "../components/Icon.svelte";
import { count, counted, duration } from "./format";

export type DeliveryOverview = Schemas["DeliveryOverview"];
export type DeliveryState = DeliveryOverview["state"];
export type OutputKind = DeliveryOverview["output"];
export type ReplayAnswer = Schemas["ReplayAnswer"];

/** `means` is said on the page of one subscription. */
export const STATES: Record<DeliveryState, { text: string; tone: string; means: string }> = {
  halted: {
    text: "Halted",
    tone: "bad",
    means: "Its receiver has said that it is gone. Nothing is sent until it is replayed.",
  },
  failing: {
    text: "Retrying",
    tone: "bad",
    means: "Its receiver does not take what is sent. It is tried again by itself.",
  },
  unconfirmed: {
    text: "Unconfirmed",
    tone: "warn",
    means: "Its reader is asked by mail first, and has not confirmed it yet.",
  },
  paused: {
    text: "Paused",
    tone: "warn",
    means: "Somebody has paused it. It keeps its place: what arrives waits.",
  },
  waiting: {
    text: "Behind",
    tone: "accent",
    means: "Items wait for its next digest, or for its turn.",
  },
  current: { text: "Up to date", tone: "good", means: "Everything is delivered." },
  expired: {
    text: "Expired",
    tone: "",
    means: "It has ended, and is removed soon. Subscribe again to go on.",
  },
};

export const OUTPUTS: Record<OutputKind, { text: string; icon: IconName }> = {
  webhook: { text: "Webhook", icon: "bolt" },
  cloudevents: { text: "CloudEvents", icon: "bolt" },
  mail: { text: "Mail", icon: "deliveries" },
  file: { text: "File", icon: "copy" },
  kafka: { text: "Kafka", icon: "system" },
  console: { text: "Console", icon: "keyboard" },
};

const COUNTED_MAX = 1_000;

/** Items that wait; they are counted up to a thousand. */
export const waitingText = (waiting: number): string =>
  waiting >= COUNTED_MAX ? `${count(COUNTED_MAX)}+` : count(waiting);

export const everyText = (seconds: number | null | undefined): string =>
  seconds == null ? "at once" : `every ${duration(seconds)}`;

/** What a replay would do, or has done: `2 dead letters are sent again`. */
export function replayText(answer: ReplayAnswer): string {
  const parts: string[] = [];
  if (answer.letters) parts.push(counted(answer.letters, "dead letter"));
  if (answer.items) parts.push(`${counted(answer.items, "item")} that had been sent before`);
  const many = answer.letters + answer.items;
  let text = parts.length
    ? `${parts.join(" and ")} ${many === 1 ? "is" : "are"} sent again`
    : "Nothing is sent again";
  if (answer.letters_left) text += `, ${count(answer.letters_left)} are left for later`;
  if (answer.resumed) text += ", and the subscription goes on";
  return text + ".";
}

/** The tone of an answer's status. */
export function statusTone(status: number | null | undefined): string {
  if (status == null) return "bad";
  return status < 300 ? "good" : status < 400 ? "warn" : "bad";
}

/** Which of these numbers stay selected when the list has changed. */
export function stillThere(selected: ReadonlySet<number>, listed: readonly number[]): Set<number> {
  return new Set(listed.filter((each) => selected.has(each)));
}
