/** A viewer of an inspector: calls the server, answers its questions, and reads the results, as the page does. */
import * as assert from 'uvu/assert';
import type { CallResult, CallsState, QuestionAnswer, ViewerCall } from '../../src/inspector/calls/call-messages.ts';

/** @param url the address of the inspector, with its token */
export function viewerOf(url: string) {
  const { origin, hash } = new URL(url);
  const headers = { authorization: `Bearer ${hash.slice(1)}`, 'content-type': 'application/json' };
  const post = async (body: unknown, more: Record<string, string> = headers): Promise<[number, string]> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${origin}/api/control`, { method: 'POST', headers: more, body: text });
    return [response.status, await response.text()];
  };
  const get = (path: string, more: Record<string, string> = headers) => fetch(`${origin}${path}`, { headers: more });
  const state = async (since = 0): Promise<CallsState> =>
    JSON.parse(await (await get(`/api/calls?since=${since}`)).text());
  /** The state once it is so. The server answers when something has changed. */
  const until = async (fits: (state: CallsState) => boolean): Promise<CallsState> => {
    for (let now = await state(); ; now = await state(now.version)) if (fits(now)) return now;
  };
  const start = async (request: object, caller: object = {}): Promise<number> => {
    const [status, text] = await post({ action: 'start', request, caller });
    assert.is(status, 200, text);
    return JSON.parse(text).call;
  };
  const tool = (name: string, args: object = {}, caller: object = {}) =>
    start({ kind: 'tool', name, arguments: args }, caller);
  const of = (now: CallsState, id: number): ViewerCall | undefined => now.calls.find((call) => call.id === id);
  const ended = async (id: number): Promise<ViewerCall> => {
    const call = of(await until((now) => of(now, id)?.status !== 'running'), id);
    assert.ok(call);
    return call;
  };
  const result = async (id: number): Promise<CallResult> =>
    JSON.parse(await (await get(`/api/result?call=${id}`)).text());
  const answer = async (given: QuestionAnswer, kind: string): Promise<void> => {
    const { questions } = await until((now) => now.questions.some((question) => question.kind === kind));
    const question = questions.find((each) => each.kind === kind)?.id;
    assert.equal(await post({ action: 'answer', question, answer: given }), [200, 'answered']);
  };
  const text = async (id: number): Promise<string> => {
    const [first] = (await result(id)).blocks;
    return first?.block.type === 'text' ? first.block.text : '';
  };
  return { post, get, state, until, start, tool, ended, result, answer, text };
}
