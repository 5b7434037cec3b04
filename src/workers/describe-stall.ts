/** Describes a stall for the operator: the blocking element and its stack. */
import type { Blocked } from './blocked.ts';

export function describeStall({ blockedMs, culprit }: Blocked): string {
  const said = `the event loop has been blocked for ${blockedMs} ms`;
  if (!culprit)
    return `${said} by native code, which cannot be interrupted: a synchronous read, crypto or compression call`;
  const { element, actor, mail, stack } = culprit;
  const who = [element, actor && `${actor} (${mail ?? 'no mail'})`].filter((part) => part !== undefined);
  const by = who.length === 0 ? 'code outside of any handler' : who.join(', in the turn of ');
  return `${said} by ${by}: no other request is served meanwhile; add awaits, or run the tool in a thread (cpu)\n${stack}`;
}
