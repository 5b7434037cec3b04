/** Values and names in the language of the host. */
import type { Host } from '../view/host-context.ts';

/** `add_item` as `Add item`. */
export function label(name: string): string {
  const spaced = name
    .replace(/[_.-]+/g, ' ')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

const MOMENT = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-][\d:]+)$/;

/** A number or a moment in the notation of the host's language; other values as they are. */
export function words(value: unknown, { locale, timeZone }: Pick<Host, 'locale' | 'timeZone'>): string {
  try {
    if (typeof value === 'number') return value.toLocaleString(locale, { maximumFractionDigits: 6 });
    if (typeof value === 'string' && MOMENT.test(value))
      return new Date(value).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone });
  } catch {
    // The host named a language or a time zone that this browser does not have.
  }
  return value === true ? 'yes' : value === false ? 'no' : String(value);
}

/** Seconds as `01:04:05`. */
export function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  return [whole / 3_600, (whole / 60) % 60, whole % 60].map((part) => `${Math.floor(part)}`.padStart(2, '0')).join(':');
}

/** The message of an error, without its name. */
export function reasonOf(error: unknown): string {
  return String(error).replace(/^\w+: /, '');
}
