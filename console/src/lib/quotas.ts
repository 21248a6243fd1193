/** What is limited for a tenant, as people read it. */
import { bytes, count } from "./format";

export interface Quota {
  title: string;
  text: string;
  shown: (value: number) => string;
}

export const QUOTAS: Record<string, Quota> = {
  statements: { title: "Sources and feeds", text: "Definitions of the tenant.", shown: count },
  subscriptions: { title: "Subscriptions", text: "That are not expired.", shown: count },
  "cpu-us": {
    title: "Price of all feeds",
    text: "Estimated CPU time for one item.",
    shown: (value) => `${count(Math.round(value * 100) / 100)} µs`,
  },
  "cpu-percent": {
    title: "Share of the cores",
    text: "What its feeds may take in a minute.",
    shown: (value) => `${count(value)} %`,
  },
  "stored-bytes": { title: "Stored", text: "Items of its sources.", shown: bytes },
  waiting: { title: "Waiting messages", text: "Not delivered yet.", shown: count },
  requests: {
    title: "Requests",
    text: "Of the API, in a second.",
    shown: (value) => `${count(value)}/s`,
  },
};
