/** The oracle: what a server owes for a text, told from JSON-RPC and the specification alone, and held against what it sends. */
import { readFileSync } from 'node:fs';
import { isObject } from '../../../src/core/protocol/json.ts';
import { MAX_BATCH, MAX_BYTES, MAX_DEPTH } from './target.ts';

/** The codes that docs/errors.md has a heading for. */
export const DOCUMENTED: ReadonlySet<number> = new Set(
  [...readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8').matchAll(/^## (-\d+) /gm)].map(
    ([, code]) => Number(code),
  ),
);

/** A string, and what makes it a key. */
const STRING = /"(?:[^"\\]|\\.)*"(\s*:)?/gs;

interface Batch {
  /** Answers without an id that it must hold. */
  anonymous: number;
  readonly owed: Owed[];
}

/** A request that waits for its answer. */
interface Owed {
  readonly id: string | number;
  readonly method: unknown;
  readonly batch: Batch | undefined;
  /** It may be answered or not: in a batch its answer may have been ready before the cancel came. */
  cancelled: boolean;
}

/** Follows one connection. It sees every text in the order in which they crossed, and throws for the first that may not be. */
export class Model {
  #owed: Owed[] = [];
  #batches: Batch[] = [];
  #anonymous = 0;
  /** Texts that may be answered with these ids, or without one, or not at all. */
  #vague: { readonly ids: readonly unknown[]; answered: boolean }[] = [];
  #session: unknown;
  answers = 0;

  /** The revision of the session that is open, if one is. */
  get session(): unknown {
    return this.#session;
  }

  /** Whether a request of this id waits for its answer. */
  awaits(wanted: unknown): boolean {
    return this.#owed.some(({ id }) => id === wanted);
  }

  /** The client sends. Call it before the server hears. */
  sends(text: string): void {
    const value = parsed(text);
    const tooLong = Buffer.byteLength(text) > MAX_BYTES;
    if (value === undefined) return tooLong ? this.#mayAnswer(text) : this.#owe();
    const unparsed = tooLong || depth(text) > MAX_DEPTH;
    const clean = !unparsed && isClean(text, value);
    if (!Array.isArray(value))
      return unparsed && isLongId(value) ? this.#owe() : this.#message(value, clean, undefined);
    const batches = this.#session === '2025-03-26';
    const fits = batches && clean && value.length > 0 && value.length <= MAX_BATCH;
    const batch: Batch = { anonymous: 0, owed: [] };
    if (batches) this.#batches.push(batch);
    if (fits) {
      for (const item of value) this.#message(item, true, batch);
      return this.#finished(batch);
    }
    // Each request that can be read is refused by its id, once; where there is none, the batch is.
    const asking = value.filter(isObject).filter((item) => asks(item) && !(unparsed && isLongId(item)));
    const ids = new Set(asking.map(({ id }) => id));
    for (const id of ids) this.#message({ id, method: 'refused' }, false, batches ? batch : undefined);
    if (ids.size === 0) this.#owe();
    this.#finished(batch);
  }

  /** A text that is too long and no JSON: whether it is a request, a batch or a notification, nobody else can say. */
  #mayAnswer(text: string): void {
    this.#vague.push({ ids: idsIn(text), answered: false });
  }

  /** Takes an error to such a text. @returns false when it cannot be one */
  #isVague(id: unknown): boolean {
    if (id !== undefined && id !== null) return this.#vague.some(({ ids }) => ids.includes(id));
    const vague = this.#vague.find(({ answered }) => !answered);
    if (vague) vague.answered = true;
    return vague !== undefined;
  }

  /** The server has heard it, and done what it does at once: what it refuses, it has refused by now. */
  heard(): void {
    this.#vague = [];
    if (this.#anonymous !== 0) throw new Error(`${this.#anonymous} answers without an id are missing`);
    const ids = this.#owed.flatMap(({ id, batch, cancelled }) => (batch || cancelled ? [] : [id]));
    const twice = ids.find((id, index) => ids.indexOf(id) !== index);
    if (twice !== undefined) throw new Error(`id ${JSON.stringify(twice)} is in flight twice`);
  }

  /** The server sends. */
  receives(text: string): void {
    const value = parsed(text);
    if (value === undefined) throw new Error('it is no JSON');
    if (!Array.isArray(value)) return this.#single(value);
    if (value.length === 0) throw new Error('an empty batch');
    // Where it could answer several, it answers the one of which the least was cancelled.
    const [batch] = this.#batches
      .filter((each) => answersAll(each, value))
      .sort((a, b) => cancelledOf(a).length - cancelledOf(b).length);
    if (!batch && value.every((answer) => isObject(answer) && check(answer) === 'error' && this.#isVague(answer.id)))
      return;
    if (!batch) throw new Error('it answers no batch, or not all of it, or more');
    this.#batches = this.#batches.filter((other) => other !== batch);
    this.#owed = this.#owed.filter((owed) => owed.batch !== batch);
    for (const answer of value) {
      if (check(answer) === 'notification') throw new Error('a notification in a batch of answers');
    }
  }

  /** Nothing is under way any more. */
  finished(): void {
    this.heard();
    const owed = this.#owed.filter(({ cancelled }) => !cancelled);
    if (owed.length > 0)
      throw new Error(`never answered: ${owed.map(({ id, method }) => `${String(method)} ${JSON.stringify(id)}`)}`);
    const batches = this.#batches.filter(({ anonymous }) => anonymous > 0);
    if (batches.length > 0) throw new Error('a batch was never answered');
    this.#owed = [];
    this.#batches = [];
  }

  #owe(batch?: Batch): void {
    if (batch) batch.anonymous += 1;
    else this.#anonymous += 1;
  }

  #message(value: unknown, clean: boolean, batch: Batch | undefined): void {
    if (!isObject(value)) return this.#owe(batch);
    const { id, method } = value;
    if (method === undefined && ('result' in value || 'error' in value)) return;
    if (id === undefined) {
      if (typeof method !== 'string') return this.#owe(batch);
      if (clean && method === 'notifications/cancelled') this.#cancel(value);
      return;
    }
    if (!isId(id)) return this.#owe(batch);
    const owed: Owed = { id, method, batch, cancelled: false };
    this.#owed.push(owed);
    batch?.owed.push(owed);
  }

  #cancel({ jsonrpc, params }: Readonly<Record<string, unknown>>): void {
    if (jsonrpc !== '2.0' || !isObject(params) || !isId(params.requestId)) return;
    const same = this.#owed.filter(({ id, cancelled }) => id === params.requestId && !cancelled);
    const [first] = same;
    // Of several with one id the first is in flight, and the others were refused at once.
    if (same.every(({ batch }) => !batch)) this.#owed = this.#owed.filter((other) => other !== first);
    // Where a batch holds answers back, nobody can see which of them is in flight.
    else for (const owed of same) owed.cancelled = true;
  }

  /** A batch of which nothing but cancelled requests is left gets no answer, or one. */
  #finished(batch: Batch): void {
    if (batch.anonymous === 0 && batch.owed.length === 0)
      this.#batches = this.#batches.filter((other) => other !== batch);
  }

  #single(value: unknown): void {
    const kind = check(value);
    if (kind === 'notification' || !isObject(value)) return;
    if (!('id' in value) || value.id === null) {
      if (this.#anonymous === 0 && this.#isVague(undefined)) return;
      if (this.#anonymous === 0) throw new Error('nothing is owed that has no id');
      const code = isObject(value.error) ? value.error.code : undefined;
      if (code !== -32700 && code !== -32600) throw new Error('an error without an id is -32700 or -32600');
      this.#anonymous -= 1;
      return;
    }
    // Its id may be that of a request in flight.
    const tooLong = isObject(value.error) && /is longer than|exceeds/.test(String(value.error.message));
    if (tooLong && this.#isVague(value.id)) return;
    const mine = this.#owed.filter(({ id, batch }) => id === value.id && !batch);
    // An error to an id that is there twice refuses the later one.
    const waiting = mine.filter(({ cancelled }) => !cancelled);
    const owed = (kind === 'error' ? waiting.at(-1) : waiting[0]) ?? mine[0];
    if (!owed) throw new Error('it answers what nobody asked, or what is answered or cancelled already');
    this.#owed = this.#owed.filter((other) => other !== owed);
    this.answers += 1;
    if (owed.method === 'initialize' && isObject(value.result)) this.#session = value.result.protocolVersion;
  }
}

/** @throws {Error} for what is no valid message of a server */
function check(value: unknown): 'result' | 'error' | 'notification' {
  if (!isObject(value) || value.jsonrpc !== '2.0') throw new Error('it is no JSON-RPC message');
  const only = (...keys: readonly string[]): void => {
    for (const key of Object.keys(value)) if (!keys.includes(key)) throw new Error(`a member too many: ${key}`);
  };
  if ('method' in value) {
    only('jsonrpc', 'method', 'params');
    if (!/^notifications\/(progress|message|\w+\/(list_changed|updated))$/.test(String(value.method)))
      throw new Error('the server asks for nothing, and notifies of nothing else');
    return 'notification';
  }
  if ('result' in value) {
    only('jsonrpc', 'id', 'result');
    if (!isId(value.id) || !isObject(value.result)) throw new Error('a result needs an id, and is an object');
    return 'result';
  }
  only('jsonrpc', 'id', 'error');
  const { error } = value;
  if (!isObject(error) || typeof error.message !== 'string' || error.message === '')
    throw new Error('an error has a message');
  if (!DOCUMENTED.has(Number(error.code))) throw new Error(`error code ${String(error.code)} is not in docs/errors.md`);
  return 'error';
}

function cancelledOf(batch: Batch): readonly Owed[] {
  return batch.owed.filter(({ cancelled }) => cancelled);
}

/** Whether these are the answers that a batch is owed: all but those that were cancelled, and nothing else. */
function answersAll(batch: Batch, answers: readonly unknown[]): boolean {
  const left = batch.owed.toSorted((a, b) => Number(a.cancelled) - Number(b.cancelled));
  let anonymous = batch.anonymous;
  for (const answer of answers) {
    if (!isObject(answer)) return false;
    if (answer.id === null || answer.id === undefined) {
      anonymous -= 1;
      continue;
    }
    const index = left.findIndex(({ id }) => id === answer.id);
    if (index === -1) return false;
    left.splice(index, 1);
  }
  return anonymous === 0 && left.every(({ cancelled }) => cancelled);
}

/** Whether it is a request that can be answered by its id, however broken it is otherwise. */
function asks(value: Readonly<Record<string, unknown>>): boolean {
  const answers = value.method === undefined && ('result' in value || 'error' in value);
  return !answers && isId(value.id);
}

/** Whether it has an id that is longer than those that are read of a text that is not parsed (docs/errors.md). */
function isLongId(value: unknown): boolean {
  return isObject(value) && asks(value) && JSON.stringify(value.id).length > 1_024;
}

/** Whatever may be an id in a text that is no JSON. */
function idsIn(text: string): readonly unknown[] {
  return [...text.matchAll(/"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*)/gs)].map(([, id = '']) => parsed(id));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || Number.isSafeInteger(value);
}

/** How deep a JSON text nests, members that are there twice included. */
function depth(text: string): number {
  let now = 0;
  let deepest = 0;
  for (const [bracket] of text.replace(STRING, '').matchAll(/[[\]{}]/g)) {
    now += bracket === '[' || bracket === '{' ? 1 : -1;
    deepest = Math.max(deepest, now);
  }
  return deepest;
}

/** Whether every reader would read the same: no key twice, none that reaches a prototype, no half of a surrogate pair. */
function isClean(text: string, value: unknown): boolean {
  let written = 0;
  for (const [, colon] of text.matchAll(STRING)) if (colon !== undefined) written += 1;
  let keys = 0;
  let clean = text.isWellFormed();
  const walk = (member: unknown): void => {
    if (typeof member === 'string') clean &&= member.isWellFormed();
    if (typeof member !== 'object' || member === null) return;
    if (Array.isArray(member)) return member.forEach(walk);
    for (const [key, child] of Object.entries(member)) {
      keys += 1;
      clean &&= key !== '__proto__' && key.isWellFormed();
      clean &&= !(key === 'constructor' && isObject(child) && Object.hasOwn(child, 'prototype'));
      walk(child);
    }
  };
  walk(value);
  return clean && keys === written;
}
