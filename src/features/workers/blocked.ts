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

/** The effect of a save on a process that the saved code blocks: it ends, and may be started again. */
export type SaveEffect = 'restart' | 'end';

/** The actions of the watchdog's thread in a stall, and their times. A server that begins to listen replaces those of the load. */
export interface StallPolicy {
  readonly softMs: number;
  /** Milliseconds of a stall after which it is reported directly on stderr, whether or not it ends. */
  readonly aloudMs: number;
  /** Milliseconds after which signals have their usual effect again, see `release` of the stall probe. Default: never. */
  readonly releaseMs: number | undefined;
  /** Milliseconds after which the process is killed; a supervisor restarts it. Default: never. */
  readonly hardMs: number | undefined;
  /** File to which the cause is written before the process is killed. */
  readonly record: string | undefined;
  /**
   * Milliseconds for which the process may be blocked after the end of stdin, beyond `releaseMs`. Default: for ever, because
   * stdin is not its input.
   */
  readonly inputMs: number | undefined;
  /** The program is loading: nothing is served yet. */
  readonly loading: boolean;
  /** The effect of a save of the author's code that blocks the thread. Default: none. */
  readonly onSave: SaveEffect | undefined;
}

/** The configuration of the watchdog's thread. */
export interface WatchdogData {
  readonly policy: StallPolicy;
  /**
   * A counter that the watched thread increments every `beatMs`, and a flag that is not 0 while a debugger may hold the
   * thread.
   */
  readonly beats: SharedArrayBuffer;
  readonly beatMs: number;
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

/** Message to the thread: another policy applies from now on. */
export interface PolicyChanged {
  readonly type: 'policy';
  readonly policy: StallPolicy;
}

/** Message to the watched process. It arrives when the event loop is free again. */
export interface BlockOver {
  readonly type: 'over';
  readonly blocked: Blocked;
  /** It was a stall of the load, which the thread has reported on stderr. */
  readonly loading: boolean;
}

/**
 * Describes a stall for the operator: the blocking element and its stack, in which the author's frames come first.
 *
 * @param loading the program is loading: nothing is served yet
 */
export function describeStall({ blockedMs, culprit }: Blocked, loading = false): string {
  const said = `the event loop has been blocked for ${blockedMs} ms`;
  if (!culprit)
    return `${said} by native code, which cannot be interrupted: a synchronous read, crypto or compression call`;
  const { element, actor, mail } = culprit;
  const { text, isOwn } = readStack(culprit);
  if (loading)
    return `${said} while the program loads: nothing is served before this code ends, or awaits something\n${text}`;
  if (isOwn) return `${said} by troupe itself\n${text}`;
  const who = [element, actor && `${actor} (${mail ?? 'no mail'})`].filter((part) => part !== undefined);
  const by = who.length === 0 ? 'code outside of any handler' : who.join(', in the turn of ');
  return `${said} by ${by}: no other request is served meanwhile; add awaits, or run the tool in a thread (cpu)\n${text}`;
}

/** The files of the author's code that is running, innermost frame first. */
export function filesOf({ stack }: Culprit): readonly string[] {
  return foldedFrames(stack.split('\n')).files;
}

/** True if no code of the author was running. */
export function isOwnWork(culprit: Culprit): boolean {
  return readStack(culprit).isOwn;
}

/** True if code of the author was running. */
export function isOfAuthor(culprit: Culprit | undefined): boolean {
  return culprit !== undefined && foldedFrames(culprit.stack.split('\n')).authored;
}

function readStack({ element, stack }: Culprit): { readonly text: string; readonly isOwn: boolean } {
  const { authored, own, text } = foldedFrames(stack.split('\n'));
  return { text, isOwn: element === undefined && own && !authored };
}
