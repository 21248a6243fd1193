/** Numbers and times as people read them, in their language and zone. */

const number = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });
const instant = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

export const count = (value: number): string => number.format(value);
export const shortCount = (value: number): string => short.format(value);

/** `3 min. ago`, `in 2 hr.` */
export function ago(time: Date, now: Date = new Date()): string {
  const seconds = (time.getTime() - now.getTime()) / 1_000;
  const size = Math.abs(seconds);
  if (size < 5) return "now";
  const [unit, length] = UNITS.find(([, length]) => size >= length) ?? UNITS.at(-1)!;
  return relative.format(Math.trunc(seconds / length), unit);
}

export const fullTime = (time: Date): string => instant.format(time);
export const clockTime = (time: Date): string => clock.format(time);
export const dayName = (time: Date): string => day.format(time);

/** `950 ms`, `1.5 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h` */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1_000)} ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const parts: [number, string][] = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = parts.findIndex(([length]) => seconds >= length);
  let left = Math.round(seconds);
  return parts
    .slice(first, first + 2)
    .map(([length, name]) => {
      const whole = Math.floor(left / length);
      left -= whole * length;
      return whole ? `${whole} ${name}` : "";
    })
    .filter(Boolean)
    .join(" ");
}

/** `12 kB`, `3.4 MB` */
export function bytes(value: number): string {
  const names = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let index = 0;
  while (size >= 1_000 && index < names.length - 1) [size, index] = [size / 1_000, index + 1];
  return `${size < 10 && index ? size.toFixed(1) : Math.round(size)} ${names[index]}`;
}

/** `1 item`, `2 items` */
export function counted(value: number, one: string, many: string = one + "s"): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
