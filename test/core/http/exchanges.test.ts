/** How many HTTP exchanges, requests and sessions are open at once (S-20, R-10), and what the health endpoints say. */
import { Agent } from 'node:http';
import * as assert from 'uvu/assert';
import { ErrorCode } from '../../../src/index.ts';
import { wait } from '../../../src/testing/arrivals.ts';
import { suite } from '../../harness/door.ts';
import { times } from '../../harness/scale.ts';
import { answered, call, refused, send } from './modern.ts';
import { Raw, rawRequest } from './raw.ts';
import { serving } from './session.ts';
import { type Answer, ask, type Headers, openSession, type Stage } from './support.ts';

const test = suite('HTTP exchanges');

const bearer = (who: string): Headers => ({ authorization: `Bearer ${who}` });
const authenticate = ({ header }: { header(name: string): string | undefined }): string | undefined =>
  header('authorization')?.replace('Bearer ', '');

/** A call that runs until it is told to end. */
async function hold(stage: Stage, key: string, headers: Headers = {}): Promise<() => Promise<void>> {
  const asked = call(stage.url, 'held', { key }, { headers });
  const { finish } = await stage.held(key);
  return async () => {
    finish();
    await answered(await asked);
  };
}

async function overloaded(asked: Promise<Answer>, bound: string, id?: number): Promise<void> {
  const answer = await asked;
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
  const { error } = await refused(answer, 429, ErrorCode.Overloaded, id);
  assert.match(error?.message ?? '', bound);
}

test('are bounded in all: one beyond is refused at once, and one less makes room', () =>
  serving(
    async (stage) => {
      const [first, ...others] = [await hold(stage, 'a'), await hold(stage, 'b'), await hold(stage, 'c')];
      await overloaded(send(stage.url, 'tools/list'), 'maxExchanges');
      await first?.();
      await answered(await send(stage.url, 'tools/list'));
      for (const end of others) await end();
    },
    { maxExchanges: 3 },
  ));

test('are freed by clients that leave, and by requests that are refused', () =>
  serving(
    async (stage) => {
      for (let round = 0; round < 5; round += 1) {
        const key = String(round);
        const asked = call(stage.url, 'held', { key }, { meta: { progressToken: 1 } });
        const { ctx } = await stage.held(key);
        ctx.progress(1);
        const gone = new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
        (await asked).cut();
        await gone;
        await refused(await send(stage.url, 'tools/paint'), 404, ErrorCode.MethodNotFound, 1);
        await refused(await ask(stage.url, { headers: { 'content-type': 'text/plain' }, body: '{}' }), 415, undefined);
      }
      const ends = [await hold(stage, 'x'), await hold(stage, 'y')];
      await overloaded(send(stage.url, 'tools/list'), 'maxExchanges');
      for (const end of ends) await end();
    },
    { maxExchanges: 2 },
  ));

test('are freed by clients that leave while it is found out who they are', () => {
  const waiting: ((principal: string | undefined) => void)[] = [];
  let asked: () => void = () => {};
  let principal: string | undefined = 'slow';
  return serving(
    async (stage) => {
      for (const who of ['ann', undefined, 'ann']) {
        const wasAsked = new Promise<void>((resolve) => {
          asked = resolve;
        });
        const raw = await Raw.open(stage.url);
        raw.write(rawRequest('POST', '/mcp', ['Host: localhost', 'Content-Type: application/json'], '{}'));
        await wasAsked;
        raw.cut();
        // The server has read the end of the connection once it has answered somebody who came later.
        for (let trip = 0; trip < 3; trip += 1)
          await (await ask(new URL('/healthz', stage.url).href, { method: 'GET', agent: false })).text();
        waiting.shift()?.(who);
      }
      principal = 'ann';
      await answered(await send(stage.url, 'tools/list'));
    },
    {
      maxExchanges: 1,
      authenticate: () => {
        if (principal !== 'slow') return principal;
        asked();
        return new Promise<string | undefined>((resolve) => void waiting.push(resolve));
      },
    },
  );
});

test('count the streams of sessions, too', () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const stream = await session.get();
      assert.is(stream.status, 200);
      const end = await hold(stage, 'a');
      await overloaded(send(stage.url, 'tools/list'), 'maxExchanges');
      await overloaded(session.get(), 'maxExchanges');
      stream.cut();
      // It is free once the server has noticed.
      while ((await send(stage.url, 'tools/list')).status === 429);
      await end();
    },
    { maxExchanges: 2 },
  ));

test('are bounded for each principal, independent of others', () =>
  serving(
    async (stage) => {
      const ends = [await hold(stage, 'a', bearer('ann')), await hold(stage, 'b', bearer('ann'))];
      await overloaded(send(stage.url, 'tools/list', { headers: bearer('ann') }), 'maxExchangesPerPrincipal');
      ends.push(await hold(stage, 'c', bearer('bob')));
      await answered(await send(stage.url, 'tools/list', { headers: bearer('bob') }));
      await ends.shift()?.();
      await answered(await send(stage.url, 'tools/list', { headers: bearer('ann') }));
      for (const end of ends) await end();
    },
    { maxExchangesPerPrincipal: 2, authenticate },
  ));

test('of anonymous clients have no bound per principal', () =>
  serving(
    async (stage) => {
      const ends = [await hold(stage, 'a'), await hold(stage, 'b'), await hold(stage, 'c')];
      await answered(await send(stage.url, 'tools/list'));
      for (const end of ends) await end();
    },
    { maxExchangesPerPrincipal: 2 },
  ));

test('that bring modern requests are bounded by those in flight', () =>
  serving(
    async (stage) => {
      const ends = [await hold(stage, 'a'), await hold(stage, 'b')];
      await overloaded(call(stage.url, 'held', { key: 'c' }, { id: 7 }), 'maxStatelessInFlight', 7);
      await ends.shift()?.();
      ends.push(await hold(stage, 'd'));
      for (const end of ends) await end();
    },
    { server: { limits: { maxStatelessInFlight: 2 } } },
  ));

const AT_ONCE = times(1_000, { quick: 200 });
const IN_FLIGHT = AT_ONCE / 5;

test(`R-10: of ${AT_ONCE} requests at once those within the bound run, the others are refused meanwhile, and a session feels nothing`, () =>
  serving(
    async (stage) => {
      const session = await openSession(stage.url);
      const refusals = new Set<number>();
      const allRefused = wait<void>({
        what: `${AT_ONCE - IN_FLIGHT} refusals`,
        ms: 30_000,
        arrived: () => `${refusals.size} came`,
      });
      const asked = Array.from({ length: AT_ONCE }, async (_, id) => {
        const answer = await call(stage.url, 'held', { key: `k${id}` }, { id });
        if (answer.status === 429 && refusals.add(id).size === AT_ONCE - IN_FLIGHT) allRefused.settle();
        return answer;
      });
      const answers = Promise.all(asked);
      const ping = await session.post({ jsonrpc: '2.0', id: 1, method: 'ping' });
      assert.equal((await ping.json()).result, {});
      await allRefused.promise;
      for (let id = 0; id < AT_ONCE; id += 1) if (!refusals.has(id)) (await stage.held(`k${id}`)).finish(`ran ${id}`);
      for (const [id, answer] of (await answers).entries()) {
        if (refusals.has(id)) await overloaded(Promise.resolve(answer), 'maxStatelessInFlight', id);
        else assert.equal((await answered(answer, id)).content, [{ type: 'text', text: `ran ${id}` }]);
      }
      assert.is(refusals.size, AT_ONCE - IN_FLIGHT);
    },
    { server: { limits: { maxStatelessInFlight: IN_FLIGHT } } },
  ));

test('health is answered to every client, and a server that is closing is not ready', () =>
  serving(async (stage) => {
    const at = (path: string, agent: Agent | false = false): Promise<Answer> =>
      ask(new URL(path, stage.url).href, { method: 'GET', headers: { accept: undefined }, agent });
    for (const path of ['/healthz', '/readyz']) assert.is((await at(path)).status, 200, path);
    const end = await hold(stage, 'a');
    // A balancer asks on the connection that it has.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    await (await at('/readyz', agent)).text();
    const closed = stage.server.close();
    const answer = await at('/readyz', agent);
    assert.is(answer.status, 503);
    await answer.text();
    await end();
    await closed;
    agent.destroy();
  }));
