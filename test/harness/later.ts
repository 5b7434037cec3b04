/** Time that a test lets pass between two processes: a start with a later clock takes the place of a wait for a real hour. */
import { pathToFileURL } from 'node:url';
import { compiled } from './compiled.ts';

/**
 * The environment of a process whose date is ahead, and of its threads and children. What it has stored with a date, such as a sleep, a
 * lease, a delay of an instance or a time to live, is due this much earlier; its timers run as always.
 *
 * @example spawn(process.execPath, args, { env: { ...process.env, ...laterBy(3_600_000) } });
 */
export function laterBy(ms: number): { readonly NODE_OPTIONS: string } {
  const preload = pathToFileURL(compiled('test/fixtures/later.mjs'));
  preload.searchParams.set('ms', String(ms));
  return { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${preload.href}`.trim() };
}
