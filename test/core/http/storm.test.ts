/** a thousand clients (fewer in a quick run) lose their streams at the same moment, twice, and come back: nothing is lost, and nothing comes twice. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { atScale } from '../../harness/scale.ts';
import { crowd, serving } from './session.ts';
import { type Answer, type HeldCall, openSession, type Session, type Stage } from './support.ts';

const test = suite('a storm of reconnects');

const CLIENTS = atScale({ quick: 50, full: 200, proof: 1_000 });
const STORMS = 2;
/** What each handler says before a storm, unaware of it, and before its client is back. */
const BURST = 3;
/** So many come back at a time; at 1,000 at once, each would wait for the others. */
const WIDTH = 50;
/** the goal is half a second, on a machine that does nothing else. */
const SLOWEST_MS = 1_000;

class Client {
  readonly session: Session;
  readonly call: HeldCall;
  answer: Answer;
  /** The last event with an id that came. */
  lastId = '';
  readonly ids: string[] = [];
  readonly data: unknown[] = [];
  #said = 0;

  private constructor(session: Session, call: HeldCall, answer: Answer) {
    this.session = session;
    this.call = call;
    this.answer = answer;
  }

  static async open(stage: Stage, key: string): Promise<Client> {
    const session = await openSession(stage.url);
    const asked = session.call('held', 'held', { key });
    const call = await stage.held(key);
    call.ctx.log.info(0);
    return new Client(session, call, await asked);
  }

  /** The handler says a few numbers more. */
  say(): void {
    for (let nth = 0; nth < BURST; nth += 1) {
      this.#said += 1;
      this.call.ctx.log.info(this.#said);
    }
  }

  /** Reads until all that was said has come. */
  async caughtUp(): Promise<void> {
    while (this.data.at(-1) !== this.#said) await this.#read();
  }

  async back(): Promise<void> {
    this.answer = await this.session.get({ 'last-event-id': this.lastId });
    assert.is(this.answer.status, 200);
  }

  async result(): Promise<void> {
    this.call.finish('whole');
    while (this.data.at(-1) !== 'whole') await this.#read();
    assert.equal(await this.answer.events.rest(), []);
  }

  async #read(): Promise<void> {
    const { id, data } = await this.answer.events.next(20_000);
    if (id !== undefined) {
      this.lastId = id;
      if (data) this.ids.push(id);
    }
    if (!data) return;
    const { params, result } = JSON.parse(data);
    this.data.push(result ? result.content[0].text : params.data);
  }

  get expected(): readonly unknown[] {
    return [...Array(this.#said + 1).keys(), 'whole'];
  }
}

test(`${CLIENTS} streams are cut at once, ${STORMS} times: each continues where it stopped`, () =>
  serving(async (stage) => {
    const clients: Client[] = [];
    await crowd(CLIENTS, WIDTH, async (index) => void clients.push(await Client.open(stage, `k${index}`)));
    for (let storm = 1; storm <= STORMS; storm += 1) {
      for (const client of clients) client.say();
      await Promise.all(clients.map((client) => client.caughtUp()));
      for (const { answer } of clients) answer.cut();
      // The server does not know yet that nobody reads these.
      for (const client of clients) client.say();
      await new Promise((resolve) => setImmediate(resolve));
      for (const client of clients) client.say();
      const took: number[] = [];
      await crowd(CLIENTS, WIDTH, async (index) => {
        const started = performance.now();
        await clients[index]?.back();
        await clients[index]?.caughtUp();
        took.push(performance.now() - started);
      });
      took.sort((a, b) => a - b);
      const p99 = took[Math.floor(CLIENTS * 0.99)] ?? 0;
      process.stdout.write(
        `storm ${storm}: ${CLIENTS} back, to the last that was replayed: p99 ${p99.toFixed(0)} ms\n`,
      );
      assertFigure(p99, SLOWEST_MS, 'the 99th of 100 clients');
    }
    await Promise.all(clients.map((client) => client.result()));
    for (const { data, ids, expected } of clients) {
      assert.equal(data, expected);
      assert.is(new Set(ids).size, ids.length);
    }
    // No two streams share an event id.
    assert.is(
      new Set(clients.flatMap(({ ids }) => ids)).size,
      clients.reduce((sum, { ids }) => sum + ids.length, 0),
    );
  }));
