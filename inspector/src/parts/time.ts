/** Formats of times and durations. */

/**
 * A time of day, with the date if it is not today.
 *
 * @param at milliseconds since 1970
 */
export function wallClock(at: number, precise = true, now = Date.now()): string {
  const date = new Date(at);
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  const day = dayOf(date, new Date(now));
  return `${day === '' ? '' : `${day} `}${precise ? `${time}.${pad(date.getMilliseconds(), 3)}` : time}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Empty for today; with the year if it is another one. */
function dayOf(date: Date, today: Date): string {
  if (date.toDateString() === today.toDateString()) return '';
  const day = `${MONTHS[date.getMonth()]} ${date.getDate()}`;
  return date.getFullYear() === today.getFullYear() ? day : `${day}, ${date.getFullYear()}`;
}

function pad(value: number, length = 2): string {
  return String(value).padStart(length, '0');
}

/** Such as `0.4 ms`, `12 ms`, `3.4 s`, `4:41`, `2 h 05 min`, `3 d`. */
export function duration(ms: number): string {
  const value = Math.max(0, ms);
  if (value < 1) return value === 0 ? '0 ms' : '< 1 ms';
  if (value < 1_000) return `${Math.round(value)} ms`;
  if (value < 10_000) return `${(value / 1_000).toFixed(1)} s`;
  if (value < 60_000) return `${Math.round(value / 1_000)} s`;
  const seconds = Math.round(value / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} min`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
  return `${Math.round(minutes / 1_440)} d`;
}

/** The rest of a timer, such as `4:41`, in whole seconds, so that it does not flicker. */
export function countdown(ms: number): string {
  if (ms <= 0) return 'now';
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')}`;
  return `${Math.round(minutes / 1_440)} d`;
}

export function bytes(count: number): string {
  if (count < 1_000) return `${count} B`;
  if (count < 1_000_000) return `${(count / 1_000).toFixed(1)} KB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(1)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** The name of a call without its method: the sign before it says that it is a call. */
export function bare(name: string): string {
  return name.replace(/^tools\/call /, '');
}

/** A long name with its middle omitted. */
export function short(name: string, most = 24): string {
  if (name.length <= most) return name;
  const tail = Math.floor(most / 3);
  return `${name.slice(0, most - tail - 1)}…${name.slice(-tail)}`;
}
