/** What the tests of legacy sessions share. */
import * as assert from 'uvu/assert';
import { type Answer, type Message, type Session, type Stage, serveHttp } from './support.ts';

export const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;
export const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** Serves for the length of one test. */
export async function serving(
  body: (stage: Stage) => Promise<void>,
  ...[options, define]: Parameters<typeof serveHttp>
): Promise<void> {
  const stage = await serveHttp(options, define);
  try {
    await body(stage);
  } finally {
    await stage.close();
  }
}

/** A refusal: its status, and the error in its body. */
export async function refusal(
  answer: Answer | Promise<Answer>,
): Promise<{ status: number; code: number; message: string }> {
  const { status, json } = await answer;
  const { error, jsonrpc } = await json();
  assert.is(jsonrpc, '2.0');
  if (!error) return assert.unreachable(`got ${status} without an error`) as never;
  return { status, code: error.code, message: error.message };
}

/** Runs many at a time, in order of their starts. */
export async function crowd(count: number, width: number, one: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await one(index);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** The status of a ping in this session. */
export async function pings(session: Session): Promise<number> {
  const answer = await session.post(PING);
  await answer.text();
  return answer.status;
}

/** Round trips on other connections: the server has read by then that one was dropped. */
export async function noticed(session: Session): Promise<void> {
  for (let trip = 0; trip < 3; trip += 1) await pings(session);
}

/** Messages of a body, be it one, a batch, or an event stream of either. */
export async function messagesOf(answer: Answer): Promise<readonly Message[]> {
  const sse = answer.headers['content-type']?.startsWith('text/event-stream');
  const texts = sse ? (await answer.events.rest()).flatMap(({ data }) => (data ? [data] : [])) : [await answer.text()];
  return texts.flatMap((text) => JSON.parse(text));
}

/** Watches these resources. */
export async function watch(session: Session, ...uris: readonly string[]): Promise<void> {
  for (const uri of uris) {
    const answer = await session.post({ jsonrpc: '2.0', id: uri, method: 'resources/subscribe', params: { uri } });
    if (!(await answer.json()).result) throw new Error(`${uri} cannot be watched`);
  }
}

/** Tells those that watch them of changes, one after the other. */
export async function change({ server, clock }: Stage, ...uris: readonly string[]): Promise<void> {
  for (const uri of uris) {
    server.resourceUpdated(uri);
    // Changes are gathered for `limits.gatherMs`.
    await clock.advance(10);
  }
}

/** The next resource that changed, by the session's own stream. @throws {Error} for another message */
export async function changed(answer: Answer): Promise<string> {
  const message = await answer.events.message();
  if (message.method === 'notifications/resources/updated') return String(message.params?.uri);
  throw new Error(`expected notifications/resources/updated, got ${JSON.stringify(message)}`);
}
