/** How often something occurs, as people say it. */
import { shortCount } from "./format";

/** `120 a day`, or `3 % of items` where the last day had none. */
export function rateText(rate: { share?: number; perDay?: number | undefined }): string {
  if (rate.perDay !== undefined) {
    const rounded = rate.perDay >= 10 ? Math.round(rate.perDay) : rate.perDay;
    return `${shortCount(rounded)} a day`;
  }
  return rate.share === undefined ? "" : `${shareText(rate.share)} of items`;
}

export function shareText(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  return `${percent < 10 ? Math.round(percent * 10) / 10 : Math.round(percent)} %`;
}
