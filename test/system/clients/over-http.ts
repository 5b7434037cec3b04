/** What an official client sees of HTTP itself: sessions, the form of each answer, calls that it must come back for. */
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import type { Exchange, HttpWire } from './http-wire.ts';
import type { OfficialClient } from './official.ts';
import { scenario } from './scenario.ts';
import { type Stage, textOf } from './stage.ts';

type HttpClient = OfficialClient<HttpWire>;

/** Registers the scenario, and what Streamable HTTP adds to it. */
export function scenarioOverHttp(who: string, revision: Revision, connect: () => Promise<HttpClient>): void {
  const modern = revision >= '2026-07-28';
  scenario(`${who} over HTTP`, revision, connect, {
    cancelsByClosing: modern,
    more: modern ? modernTests : sessionTests,
  });
}

/** Registers the scenario, and what HTTP+SSE of 2024-11-05 adds to it. */
export function scenarioOverSse(who: string, revision: Revision, connect: () => Promise<HttpClient>): void {
  scenario(`${who} over HTTP+SSE`, revision, connect, {
    more({ test, client }) {
      test('receives everything on one stream, and every POST is only acknowledged', () => {
        const [stream, ...posts] = client().wire.exchanges;
        assert.equal([stream?.method, stream?.type], ['GET', 'text/event-stream']);
        assert.ok(posts.length > 100);
        assert.ok(posts.every(({ method, status, type }) => method === 'POST' && status === 202 && type === undefined));
      });
    },
  });
}

function formTests({ test, client, call }: Stage<HttpClient>): void {
  test('is answered in JSON, and in a stream where something is said before the answer', async () => {
    const { exchanges } = client().wire;
    const forms = async (calling: Promise<unknown>): Promise<unknown[]> => {
      const before = exchanges.length;
      await calling;
      const posts = exchanges.slice(before).filter(({ method }) => method === 'POST');
      return posts.map(({ status, type }) => [status, type]);
    };
    assert.equal(await forms(call('echo', { text: 'plain' })), [[200, 'application/json']]);
    const talking = client().callTool('test_tool_with_progress', {}, { onProgress: () => {} });
    assert.equal(await forms(talking), [[200, 'text/event-stream']]);
    // Without a progress token there is nobody to report to.
    assert.equal(await forms(call('test_tool_with_progress')), [[200, 'application/json']]);
    assert.equal(await forms(call('no_such_tool').catch(() => {})), [[200, 'application/json']]);
  });
}

function sessionTests(stage: Stage<HttpClient>): void {
  const { test, since, client, call } = stage;
  formTests(stage);

  test('has one session from initialize on, and receives on its stream what belongs to no request', () => {
    const { exchanges } = client().wire;
    const [opening, ...others] = exchanges;
    assert.is(opening?.asked?.method, 'initialize');
    assert.match(opening?.session ?? '', /^[\w-]{24}$/);
    assert.ok(others.every(({ headers }) => headers.get('mcp-session-id') === opening?.session));
    const own = others.filter(({ method, headers }) => method === 'GET' && !headers.has('last-event-id'));
    assert.equal([own[0]?.status, own[0]?.type], [200, 'text/event-stream']);
  });

  test('reconnects once for a call that it cancelled, and is asked not to reconnect again', async () => {
    const { wire } = client();
    const again = (): Exchange | undefined => wire.exchanges.find(({ headers }) => headers.has('last-event-id'));
    await wire.until(() => again() !== undefined);
    assert.is(again()?.status, 204);
  });

  test('comes back for the answer of a call that let go of it, where its revision can', async () => {
    const { wire } = client();
    const before = wire.exchanges.length;
    assert.is(textOf(await call('test_reconnection')), 'The client came back for this.');
    const exchanges = wire.exchanges.slice(before);
    const primed = since('2025-11-25');
    const post = exchanges.find(({ method }) => method === 'POST');
    assert.is(post?.type, primed ? 'text/event-stream' : 'application/json');
    assert.equal(
      exchanges.filter(({ headers }) => headers.has('last-event-id')).map(({ method, status }) => [method, status]),
      primed ? [['GET', 200]] : [],
    );
  });

  test('ends its session, which is then gone', async () => {
    const { wire } = client();
    await client().close();
    const last = wire.exchanges.at(-1);
    assert.equal([last?.method, last?.status], ['DELETE', 204]);
    const headers = last?.headers ?? new Headers();
    assert.is((await fetch(wire.url, { method: 'DELETE', headers })).status, 404);
  });
}

function modernTests(stage: Stage<HttpClient>): void {
  const { test, client, call } = stage;
  formTests(stage);

  test('has no session and no stream but those of its requests', () => {
    const { exchanges } = client().wire;
    assert.ok(exchanges.every(({ method, session }) => method === 'POST' && session === undefined));
  });

  test('repeats in headers what its requests say', async () => {
    const { wire } = client();
    await client().listTools();
    assert.is(textOf(await call('route_by_region', { region: 'süd', urgent: true })), 'Routed to süd, urgently.');
    const requests = wire.exchanges.filter((exchange): exchange is Asked => exchange.asked?.id !== undefined);
    for (const { headers, asked } of requests) {
      const { _meta } = Object(asked.params);
      assert.is(headers.get('mcp-protocol-version'), _meta[META.protocolVersion]);
      assert.is(headers.get('mcp-method'), asked.method);
    }
    const routed = requests.at(-1)?.headers;
    assert.is(routed?.get('mcp-name'), 'route_by_region');
    assert.is(routed?.get('mcp-param-region'), `=?base64?${Buffer.from('süd').toString('base64')}?=`);
    assert.is(routed?.get('mcp-param-urgent'), 'true');
  });
}

type Asked = Exchange & { readonly asked: NonNullable<Exchange['asked']> };
