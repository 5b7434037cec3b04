/** Says of a blocked loop, in words for the operator, who blocked it and where. */
import type { Blocked } from './blocked.ts';

export function describeStall({ blockedMs, culprit }: Blocked): string {
  const said = `the event loop has been blocked for ${blockedMs} ms`;
  if (!culprit) return `${said} by native code, which cannot be asked: a synchronous read, crypto or compression call`;
  const { element, actor, mail, stack } = culprit;
  const who = [element, actor && `${actor} (${mail ?? 'no mail'})`].filter((part) => part !== undefined);
  const by = who.length === 0 ? 'something that is no handler' : who.join(', in the turn of ');
  return `${said} by ${by}: nobody else is served meanwhile; await in between, or run it in a thread (cpu)\n${stack}`;
}
