/** One script in its sandbox, on the side of the host: its calls, its log, its bounds and its end. */
import { shortened } from '../../../core/protocol/json.ts';
import type { Engine, EngineFault, EngineScript, GuestDelivery } from './engine.ts';
import { type GuestMessage, MAX_DEPTH, MAX_LINE_LENGTH } from './prelude.ts';
import { ProcessorTime } from './processor-time.ts';
import type { Delivery, Script, ScriptCall, ScriptEnd, ScriptFault, ScriptPlace, ScriptSlice } from './script.ts';
import { hintFor } from './script-hints.ts';
import { ScriptLog } from './script-log.ts';
import { isTyped, lineIn, placeIn, placeOfLine, sourcesOf, withoutTypes } from './script-text.ts';

export interface ScriptBounds {
  /** Milliseconds of processor time from one delivery to the next rest. */
  readonly sliceMs: number;
  /** Milliseconds of processor time of the whole script. */
  readonly runMs: number;
  readonly memoryBytes: number;
  /** Calls of the whole script. */
  readonly maxCalls: number;
  /** Characters of JSON: of the result, and of the arguments of the calls of one slice. */
  readonly maxOutputLength: number;
}

type StopReason = Extract<ScriptEnd, { type: 'stopped' }>['why'];

export class SandboxedScript {
  readonly #bounds: ScriptBounds;
  /** Asked again and again while the script runs: true ends it. */
  readonly #dropped: () => boolean;
  #engine: EngineScript | undefined;
  #script: Script = { code: '', seed: 0, startedAt: 0, groups: [] };
  #date = 0;
  #time = new ProcessorTime();
  /** Milliseconds that the parts of this slice may take together: one bound for each delivery. */
  #allowedMs = Number.POSITIVE_INFINITY;
  /** Milliseconds of the whole script before this slice. */
  #usedMs = 0;
  #stopped: StopReason | undefined;
  #calls: ScriptCall[] = [];
  #callsLength = 0;
  readonly #lines = new Map<number, number>();
  readonly #log = new ScriptLog();
  #issued = 0;
  readonly #open = new Set<number>();
  readonly #faults = new Map<number, ScriptFault>();
  /** Rejected promises that nothing handles, by the ids that the engine gives them. */
  readonly #rejected = new Map<string, string>();
  /** See `ScriptSource`. */
  #indent = 0;
  #end: ScriptEnd | undefined;

  private constructor(bounds: ScriptBounds, dropped: () => boolean) {
    this.#bounds = bounds;
    this.#dropped = dropped;
  }

  /** Makes a sandbox before its script is known. */
  static async create(engine: Engine, bounds: ScriptBounds, dropped: () => boolean): Promise<SandboxedScript> {
    const made = new SandboxedScript(bounds, dropped);
    made.#engine = await engine.create({
      memoryBytes: bounds.memoryBytes,
      host: (kind, ...texts) => made.#hear(kind, texts),
      date: () => made.#date,
      mustStop: () => made.#mustStop(),
    });
    return made;
  }

  /** Bytes of this process that the script occupies. */
  get memoryBytes(): number {
    return this.#engine?.memory() ?? 0;
  }

  /** Starts the script, and settles the calls whose outcomes are known. Call it once. */
  begin(script: Script, deliveries: readonly Delivery[]): ScriptSlice {
    this.#script = script;
    this.#date = script.startedAt;
    this.#time = new ProcessorTime();
    this.#allowedMs = 0;
    this.#part(() => this.#start());
    return this.#settle(deliveries);
  }

  /** Settles calls, one after another. */
  proceed(deliveries: readonly Delivery[]): ScriptSlice {
    this.#time = new ProcessorTime();
    this.#allowedMs = 0;
    return this.#settle(deliveries);
  }

  dispose(): void {
    this.#engine?.dispose();
    this.#engine = undefined;
  }

  #settle(deliveries: readonly Delivery[]): ScriptSlice {
    for (const delivery of deliveries) if (!this.#end) this.#deliver(delivery);
    if (!this.#end && this.#open.size === 0) this.#end = { type: 'threw', name: 'Error', message: STUCK };
    const processorMs = this.#time.ms();
    this.#usedMs += processorMs;
    const calls = this.#calls;
    this.#calls = [];
    return {
      calls,
      logs: this.#log.take(),
      processorMs,
      memoryBytes: this.memoryBytes,
      unfinished: this.#end ? [...this.#open] : [],
      ...(this.#end && { end: this.#end }),
    };
  }

  #start(): EngineFault | undefined {
    const { code, groups, seed, startedAt } = this.#script;
    const start = { groups: JSON.stringify(groups), seed, startedAt };
    const sources = sourcesOf(code);
    let fault: EngineFault | undefined;
    // JavaScript first: most scripts have no types.
    for (const source of [...sources, ...sources.map((each) => () => withoutTypes(each))]) {
      const read = typeof source === 'function' ? source() : source;
      if (!read) continue;
      const indent = this.#indent;
      this.#indent = read.indent;
      const found = this.#engine?.start({ ...start, source: read.source });
      if (!isSyntaxError(found) || this.#issued > 0) return found;
      // The error of the body is the one to report.
      if (typeof source !== 'function') fault = found;
      else this.#indent = indent;
    }
    return fault;
  }

  #deliver({ number, at, ...outcome }: Delivery): void {
    this.#date = at;
    if (!this.#open.delete(number)) return;
    let settled: GuestDelivery;
    if ('error' in outcome) {
      const { data = '', ...fault } = outcome.error;
      this.#faults.set(number, outcome.error);
      settled = { number, ok: false, json: JSON.stringify(fault), data };
    } else settled = { number, ok: true, json: outcome.value, data: '' };
    this.#part(() => this.#engine?.deliver(settled));
  }

  /** Runs a part of the script, within its bounds. */
  #part(run: () => EngineFault | undefined): void {
    this.#allowedMs = Math.min(this.#allowedMs + this.#bounds.sliceMs, this.#bounds.runMs - this.#usedMs);
    this.#callsLength = 0;
    const fault = run();
    if (!this.#end && (fault || this.#stopped)) this.#end = this.#endOf(fault);
  }

  #mustStop(): boolean {
    if (this.#stopped) return true;
    if (this.#dropped()) this.#stopped = 'dropped';
    else if (this.#time.exceeds(this.#allowedMs)) this.#stopped = 'processor time';
    return this.#stopped !== undefined;
  }

  #hear(kind: GuestMessage, [first = '', second = '', third = '', fourth = '']: readonly string[]): number {
    // Nothing that the script does after its end has an effect.
    if (this.#end || this.#stopped) return 0;
    switch (kind) {
      case 'call':
        return this.#call(first, second, third);
      case 'log':
        this.#log.add(first);
        return 0;
      case 'rejected':
        this.#noteRejection(first, second, third);
        return 0;
      case 'handled':
        this.#rejected.delete(first);
        return 0;
      case 'returned':
        return this.#finish(this.#returned(first, second === 'undefined'));
      case 'unwritable':
        return this.#finish({ type: 'threw', name: 'TypeError', message: unwritableMessage(first) });
      case 'threw':
        return this.#finish(this.#threw(first, second, third, fourth));
    }
  }

  #call(name: string, given: string, stack: string): number {
    // The list of arguments is one level.
    if (isDeeper(given, MAX_DEPTH + 1)) return -1;
    this.#issued += 1;
    this.#callsLength += given.length;
    if (this.#issued > this.#bounds.maxCalls) return this.#stop('calls');
    if (this.#callsLength > this.#bounds.maxOutputLength) return this.#stop('output');
    const line = lineIn(stack);
    this.#calls.push({ number: this.#issued, name, arguments: given, ...(line !== undefined && { line }) });
    if (line !== undefined) this.#lines.set(this.#issued, line);
    this.#open.add(this.#issued);
    return this.#issued;
  }

  #returned(json: string, isUndefined: boolean): ScriptEnd {
    const { maxOutputLength } = this.#bounds;
    if (json.length > maxOutputLength)
      return {
        type: 'stopped',
        why: 'output',
        message: `the result is ${json.length} characters of JSON, and at most ${maxOutputLength} are allowed: return less, such as the fields that are needed, or a count`,
      };
    if (isDeeper(json, MAX_DEPTH))
      return {
        type: 'threw',
        name: 'RangeError',
        message: `the result is nested deeper than ${MAX_DEPTH} levels: return a flatter value`,
      };
    return { type: 'returned', value: isUndefined ? undefined : json };
  }

  #threw(name: string, message: string, stack: string, number: string): ScriptEnd {
    const { code, groups } = this.#script;
    if (DEEP.test(message) || name === 'InternalError') {
      const why = DEEP.test(message) ? 'stack' : message === 'out of memory' ? 'memory' : undefined;
      // Outside of the functions that were interrupted, such an error is an ordinary one. Nothing that a script can do about it helps.
      if (why) return { type: 'stopped', why, message: this.#words(why), ...placeIn(code, stack, this.#indent) };
    }
    const fault = this.#faults.get(Number(number));
    const line = this.#lines.get(Number(number));
    // The error of a call is made when the call has failed: its place is that of the call.
    const place = fault && line !== undefined ? placeOfLine(code, line) : placeIn(code, stack, this.#indent);
    const words = shortened(message, MAX_LINE_LENGTH) + hintFor(name, message, groups);
    return { type: 'threw', name, message: words, ...place, ...(number !== '' && fault && { fault }) };
  }

  #noteRejection(id: string, text: string, stack: string): void {
    const line = lineIn(stack);
    const words = `an error that nothing awaits: ${text}${line === undefined ? '' : ` (line ${line})`}`;
    if (this.#rejected.size < MAX_REJECTED) this.#rejected.set(id, words);
  }

  #finish(end: ScriptEnd): number {
    this.#end = end;
    for (const text of this.#rejected.values()) this.#log.add(text);
    // Other parts of the script may still run.
    this.#engine?.interrupt();
    return 0;
  }

  #stop(why: StopReason): number {
    this.#stopped = why;
    this.#engine?.interrupt();
    return 0;
  }

  #endOf(fault: EngineFault | undefined): ScriptEnd {
    const { code } = this.#script;
    if (this.#stopped) return { type: 'stopped', why: this.#stopped, message: this.#words(this.#stopped) };
    const place = placeIn(code, fault?.stack ?? '', this.#indent);
    if (fault?.type === 'error') {
      if (fault.name !== 'SyntaxError' || this.#issued > 0)
        return this.#threw(fault.name, fault.message, fault.stack, '');
      return { type: 'invalid', message: invalidMessage(code, fault.message, place), ...place };
    }
    // The stack of the thread ends before that of the engine, for example in a text of a million brackets.
    const isDeep = fault?.type === 'broken' && DEEP.test(fault.message);
    const why = fault?.type === 'memory' ? 'memory' : isDeep ? 'stack' : 'engine';
    const message =
      why === 'engine' ? `the sandbox failed: ${shortened(fault?.message ?? '', MAX_LINE_LENGTH)}` : this.#words(why);
    return { type: 'stopped', why, message, ...place };
  }

  #words(why: StopReason): string {
    const { sliceMs, runMs, memoryBytes, maxCalls, maxOutputLength } = this.#bounds;
    switch (why) {
      case 'processor time':
        return this.#allowedMs < sliceMs
          ? `the script used more than ${runMs} ms of processor time in all: do less in one script`
          : `the script computed for more than ${sliceMs} ms without waiting for a call: look for a loop that never ends, or process less data at once`;
      case 'memory':
        return `the script used more than ${Math.floor(memoryBytes / 1_048_576)} MiB of memory: hold less data at once, such as one page after another`;
      case 'stack':
        return 'the script called functions too deeply: look for a recursion that never ends, or write a loop';
      case 'output':
        return `the arguments of the calls that wait are more than ${maxOutputLength} characters of JSON: await calls before the next ones, or pass less`;
      case 'calls':
        return `the script made more than ${maxCalls} calls: do less in one script`;
      case 'dropped':
        return 'the run was cancelled';
      case 'engine':
        return 'the sandbox failed';
    }
  }
}

/** The message of engines when a function calls itself too often. */
const DEEP = /^(?:Maximum call stack size exceeded|stack overflow)$/;

/** Rejected promises that are reported at most. */
const MAX_REJECTED = 20;

function isSyntaxError(fault: EngineFault | undefined): boolean {
  return fault?.type === 'error' && fault.name === 'SyntaxError';
}

const STUCK =
  'the script waits for something that never comes: no call is open, and nothing can settle the promise that it awaits. Look for a promise that is never resolved';

/** True if a JSON text has more levels of arrays and objects. */
function isDeeper(json: string, limit: number): boolean {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < json.length; at += 1) {
    const mark = json[at];
    if (isText && mark === '\\') at += 1;
    else if (mark === '"') isText = !isText;
    else if (isText) continue;
    else if (mark === '[' || mark === '{') depth += 1;
    else if (mark === ']' || mark === '}') depth -= 1;
    if (depth > limit) return true;
  }
  return false;
}

function unwritableMessage(reason: string): string {
  if (/BigInt/.test(reason))
    return 'the result cannot be written as JSON: it has a BigInt. Write Number(value) or String(value)';
  if (/circular/.test(reason))
    return 'the result cannot be written as JSON: it contains itself. Return the fields that are needed';
  return `the result cannot be written as JSON: ${reason}. Return plain data`;
}

function invalidMessage(code: string, message: string, place: ScriptPlace): string {
  if (isTyped(code, place))
    return `${message}. The script has a type of TypeScript here, and this server cannot remove it: write JavaScript without types`;
  if (/^\s*(?:import|export)\b/m.test(code))
    return `${message}. A script is the body of an async function: it has no import and no export, and its groups are globals`;
  const lines = code.split('\n');
  const isAtEnd =
    place.line === lines.length &&
    !lines
      .at(-1)
      ?.slice((place.column ?? 1) - 1)
      .trim();
  return isAtEnd ? `the script ends before each bracket and each brace is closed (${message})` : message;
}
