/** The calls of this page and of other viewers: what runs, what the server asks, and the results. */
import { signal } from '@preact/signals';
import type {
  Answerable,
  CallerOptions,
  CallRequest,
  CallResult,
  CallsState,
  Control,
  QuestionAnswer,
  ViewerCall,
} from '../../../src/inspector/calls/call-messages.ts';
import { LIVE, type WireExchange } from '../../../src/inspector/model/index.ts';
import { ask, Refused } from '../store/api.ts';
import { connection, known, say } from '../store/state.ts';

export const calls = signal<CallsState | undefined>(undefined);
/** The results that were read, by the ids of their calls. */
export const results = signal<ReadonlyMap<number, CallResult>>(new Map());
/** The client that sends the next call. */
export const caller = signal<CallerOptions>({});

export const ALL: readonly Answerable[] = ['form', 'url', 'sampling', 'roots'];

/** Milliseconds until the next attempt after a failed one. */
const RETRY_MS = 2_000;
/** Results that the page holds. */
const MOST_RESULTS = 20;

export const mayCall = (): boolean => known().hello?.control === true && connection.value.state === 'live';

/** Follows the calls while the view is open. One request waits at the server at any time. @returns a function that ends it */
export function watchCalls(): () => void {
  const end = new AbortController();
  const run = async (): Promise<void> => {
    while (!end.signal.aborted) {
      if (!mayCall() || document.hidden) {
        await pause();
        continue;
      }
      try {
        const response = await ask(`api/calls?since=${calls.value?.version ?? 0}`, { signal: end.signal });
        calls.value = await response.json();
      } catch {
        // Another view follows them now, and waits for what is newer than these.
        if (end.signal.aborted) return;
        await pause();
        // A restarted server counts from the beginning.
        calls.value = undefined;
      }
    }
  };
  const pause = (): Promise<void> =>
    new Promise((done) => {
      setTimeout(done, RETRY_MS);
    });
  void run();
  return () => end.abort();
}

/** Sends a command. @returns undefined after a failure, which the page shows */
async function command(body: Control): Promise<Response | undefined> {
  try {
    return await ask('api/control', { body });
  } catch (error) {
    say(error instanceof Refused ? error.message : 'The server cannot be reached.');
    return undefined;
  }
}

async function started(body: Control): Promise<number | undefined> {
  const response = await command(body);
  const { call }: { call?: number } = response ? await response.json() : {};
  return call;
}

export function start(request: CallRequest): Promise<number | undefined> {
  return started({ action: 'start', request, caller: caller.value });
}

export function again(call: number): Promise<number | undefined> {
  return started({ action: 'again', call });
}

export async function cancel(call: number): Promise<void> {
  await command({ action: 'cancel', call });
}

export async function answer(question: number, given: QuestionAnswer): Promise<void> {
  const answered = await command({ action: 'answer', question, answer: given });
  // The next state would show the card a moment longer, and a second click would answer it again.
  if (answered && calls.value)
    calls.value = { ...calls.value, questions: calls.value.questions.filter(({ id }) => id !== question) };
}

export async function watch(uri: string, on: boolean): Promise<void> {
  await command(on ? { action: 'watch', uri, caller: caller.value } : { action: 'unwatch', uri });
}

export async function forget(): Promise<void> {
  await command({ action: 'forget' });
}

/** The values that the server suggests; empty if it has none, or does not answer. */
export async function complete(
  reference: { readonly prompt: string } | { readonly resource: string },
  argument: { readonly name: string; readonly value: string },
  others: { readonly [name: string]: string },
): Promise<readonly string[]> {
  try {
    const body: Control = { action: 'complete', reference, argument, known: others, caller: caller.value };
    const response = await ask('api/control', { body });
    const { values }: { values: readonly string[] } = await response.json();
    return values;
  } catch {
    return [];
  }
}

/** Reads the result of an ended call, once. */
export async function readResult({ id, hasResult }: ViewerCall): Promise<void> {
  if (!hasResult || results.value.has(id)) return;
  try {
    const response = await ask(`api/result?call=${id}`);
    const result: CallResult = await response.json();
    const held = [...results.value].slice(-MOST_RESULTS);
    results.value = new Map([...held, [id, result]]);
  } catch (error) {
    say(error instanceof Refused ? error.message : 'The result could not be read.');
  }
}

/** The name of a request in a line. */
export function nameOf(request: CallRequest): string {
  switch (request.kind) {
    case 'tool':
    case 'prompt':
      return request.name;
    case 'resource':
      return request.uri;
    case 'template':
      return request.template;
    case 'request':
      return request.method;
  }
}

const HANDSHAKE: ReadonlySet<string> = new Set(['initialize', 'server/discover', 'tools/list']);

/** The exchange on the wire that a call caused first, besides the handshake of its session. */
export function exchangeOf({ record, request }: ViewerCall): WireExchange | undefined {
  if (record === 0) return undefined;
  const data = known();
  return data.exchanges.all.until(LIVE).find(
    ({ seq, method, kind }) =>
      seq > record &&
      kind === 'request' &&
      (!HANDSHAKE.has(method) || (request.kind === 'request' && request.method === method)) &&
      // Through a client of another program, the message to that client's actor is between them.
      data.causes.because(seq).some((cause) => cause.seq === record),
  );
}
