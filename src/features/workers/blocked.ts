/**
 * A stall: the messages about it between the watchdog's thread, the watched process and the file that outlives it, and
 * its description for the operator.
 */

import { foldedFrames } from '../../core/kernel/authored-stack.ts';

/** The running code, as the blocked thread reports it. */
export interface Culprit {
  /** Such as `tool "resize"`; undefined if no handler runs. */
  readonly element: string | undefined;
  /**
   * A digest of the call's name and arguments, which distinguishes it from other calls of the element without revealing
   * them.
   */
  readonly digest: string | undefined;
  /** The actor that is processing a message, and the type of the message. */
  readonly actor: string | undefined;
  readonly mail: string | undefined;
  /** The stack, innermost frame first. */
  readonly stack: string;
}

export interface Blocked {
  /** Time of the detection, in milliseconds since 1970. */
  readonly at: number;
  readonly blockedMs: number;
  /** Undefined if the thread could not report it, because it was in native code. */
  readonly culprit: Culprit | undefined;
}

/** The configuration of the watchdog's thread. */
export interface WatchdogData {
  /**
   * A counter that the watched thread increments every `beatMs`, and a flag that is not 0 while a debugger may hold the
   * thread.
   */
  readonly beats: SharedArrayBuffer;
  readonly beatMs: number;
  readonly softMs: number;
  /** Milliseconds after which a stall is reported directly on stderr, whether or not it ends. */
  readonly aloudMs: number;
  /** Milliseconds after which signals have their usual effect again, see `release` of the stall probe. Default: never. */
  readonly releaseMs: number | undefined;
  /** Milliseconds after which the process is killed; a supervisor restarts it. Default: never. */
  readonly hardMs: number | undefined;
  /** File to which the cause is written before the process is killed. */
  readonly record: string | undefined;
  /**
   * Crash markers that record what the process is doing. The thread marks in them that the watchdog killed the process.
   */
  readonly notes: readonly MarkerPlace[];
}

/** The place of a crash marker: a file, or the memory of a `SharedMark`. */
export type MarkerPlace = string | SharedArrayBuffer;

/** Message to the thread: one more crash marker. */
export interface NotesOpened {
  readonly type: 'notes';
  readonly marker: MarkerPlace;
}

/** Message to the watched process. It arrives when the event loop is free again. */
export interface BlockOver {
  readonly type: 'over';
  readonly blocked: Blocked;
}

/** Describes a stall for the operator: the blocking element and its stack, in which the author's frames come first. */
export function describeStall({ blockedMs, culprit }: Blocked): string {
  const said = `the event loop has been blocked for ${blockedMs} ms`;
  if (!culprit)
    return `${said} by native code, which cannot be interrupted: a synchronous read, crypto or compression call`;
  const { element, actor, mail } = culprit;
  const { text, isOwn } = readStack(culprit);
  if (isOwn) return `${said} by troupe itself, outside of any handler\n${text}`;
  const who = [element, actor && `${actor} (${mail ?? 'no mail'})`].filter((part) => part !== undefined);
  const by = who.length === 0 ? 'code outside of any handler' : who.join(', in the turn of ');
  return `${said} by ${by}: no other request is served meanwhile; add awaits, or run the tool in a thread (cpu)\n${text}`;
}

/** True if no code of the author was running. */
export function isOwnWork(culprit: Culprit): boolean {
  return readStack(culprit).isOwn;
}

function readStack({ element, stack }: Culprit): { readonly text: string; readonly isOwn: boolean } {
  const { authored, own, text } = foldedFrames(stack.split('\n'));
  return { text, isOwn: element === undefined && own && !authored };
}
