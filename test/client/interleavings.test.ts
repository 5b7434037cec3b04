/** Random interleavings of calls, responses, failures, sign-ins, time and closing: each request gets one outcome, and the right one. */
import * as assert from 'uvu/assert';
import type { Authorization } from '../../src/client/authorization.ts';
import type { Channel, ChannelFailure, ChannelHost, OutgoingMessage } from '../../src/client/channels/channel.ts';
import { type ClientEvent, quiet, spawnClientConnection } from '../../src/client/client-connection.actor.ts';
import { ClientError } from '../../src/client/client-errors.ts';
import { readSettings } from '../../src/client/client-options.ts';
import type { OutgoingRequest } from '../../src/client/outgoing-requests.ts';
import { ServerRequests } from '../../src/client/server-requests.ts';
import { createActorSystem } from '../../src/core/kernel/actor-system.ts';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';
import { suite } from '../harness/door.ts';
import { atScale } from '../harness/scale.ts';
import { Random } from '../system/simulation/random.ts';

const test = suite('interleavings of a connection');

const SEEDS = atScale({ quick: 6, full: 400, proof: 100_000 });
const STEPS = 60;

/** What became of one attempt, as the server knows it. */
type Fate = 'pending' | 'not carried out' | 'unknown' | 'answered';

interface Attempt {
  readonly message: OutgoingMessage;
  readonly channel: FakeChannel;
  readonly call: Call | undefined;
  fate: Fate;
}

/** A request of the program, with every outcome that it was given. */
interface Call {
  readonly request: OutgoingRequest;
  readonly attempts: Attempt[];
  readonly outcomes: (Error | 'result')[];
}

class FakeChannel implements Channel {
  readonly kind: 'stream' | 'http';
  readonly #world: World;
  host: ChannelHost | undefined;
  closed = false;

  constructor(kind: 'stream' | 'http', world: World) {
    this.kind = kind;
    this.#world = world;
  }

  open(host: ChannelHost): void {
    this.host = host;
    if (this.#world.random.chance(0.2)) this.#world.gone(this);
  }

  send(message: OutgoingMessage): void {
    assert.not(this.closed, `sent ${message.method} over a closed channel`);
    this.#world.sent(this, message);
  }

  abandon(id: string | number): void {
    for (const attempt of this.#world.attempts)
      if (attempt.message.id === id && attempt.fate === 'pending') attempt.fate = 'unknown';
  }

  answered(): void {}

  close(): Promise<void> {
    this.closed = true;
    this.host = undefined;
    for (const attempt of this.#world.attempts)
      if (attempt.channel === this && attempt.fate === 'pending') attempt.fate = 'unknown';
    return Promise.resolve();
  }
}

const FAILURES: readonly [Exclude<Fate, 'pending' | 'answered'>, ChannelFailure][] = [
  ['not carried out', { kind: 'session lost', status: 404 }],
  ['not carried out', { kind: 'session lost', status: 404 }],
  ['not carried out', { kind: 'unauthorized', status: 401, challenge: undefined, text: '' }],
  ['not carried out', { kind: 'unauthorized', status: 403, challenge: 'Bearer error="insufficient_scope"', text: '' }],
  ['not carried out', { kind: 'unknown era', status: 404 }],
  ['not carried out', { reason: 'unreachable', message: 'no route', carriedOut: 'no' }],
  ['not carried out', { reason: 'overloaded', message: 'wait', carriedOut: 'no', retryAfterMs: 1_000 }],
  ['unknown', { reason: 'closed', message: 'cut', carriedOut: 'unknown' }],
  ['unknown', { reason: 'unreachable', message: 'HTTP 502', carriedOut: 'unknown' }],
];

/** One run: a connection, its server, its callers, its person who signs in. */
class World {
  readonly random: Random;
  readonly clock = new SimulatedClock();
  readonly calls: Call[] = [];
  readonly attempts: Attempt[] = [];
  readonly channels: FakeChannel[] = [];
  readonly events: ClientEvent['type'][] = [];
  readonly log: string[] = [];
  /** Each step with the state that follows. */
  readonly trace: string[] = [];
  readonly #state: () => string | undefined;
  readonly #kind: 'stream' | 'http';
  readonly #signIns: { resolve(): void; reject(error: Error): void }[] = [];
  readonly #connection: ReturnType<typeof spawnClientConnection>;
  #now = 'beginning';

  constructor(seed: number) {
    this.random = new Random(seed);
    this.#kind = this.random.pick(['stream', 'http']);
    const system = createActorSystem({ clock: this.clock, log: (_level, text) => void this.log.push(text) });
    this.#state = () => system.inspection.live('client/1')?.state();
    const authorization: Authorization = {
      headers: () => ({}),
      authorize: (_challenge, signal) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')));
          this.#signIns.push({ resolve, reject });
        }),
    };
    const roots = (): Promise<never> => new Promise(() => {});
    this.#connection = spawnClientConnection({
      system,
      address: 'client/1',
      reach: {
        name: 'fake',
        channel: () => this.#newChannel(),
        authorization: this.random.chance(0.8) ? authorization : undefined,
        resource: new URL('http://fake.test/'),
      },
      settings: readSettings({
        eras: this.random.pick(['auto', 'auto', 'legacy', 'modern']),
        maxInFlight: this.random.pick([3, 100]),
      }),
      info: { name: 'test', version: '1' },
      capabilities: {},
      logLevel: undefined,
      log: (_level, text) => void this.log.push(text),
      serverRequests: new ServerRequests({ roots }, this.clock, () => {}),
      client: { address: 'test', send: ({ type }) => void this.events.push(type) },
      onLog: undefined,
      oneCaller: false,
      random: () => this.random.next(),
    });
    this.#connection.mailbox.send({ type: 'need' });
  }

  #newChannel(): FakeChannel {
    if (this.random.chance(0.02)) throw new Error('no such program');
    for (const other of this.channels) assert.ok(other.closed, `${this.#now}: a channel is open while another opens`);
    const channel = new FakeChannel(this.#kind, this);
    this.channels.push(channel);
    return channel;
  }

  sent(channel: FakeChannel, message: OutgoingMessage): void {
    if (message.id === undefined) return;
    const call = this.calls.find(({ request, outcomes }) => request.id === message.id && outcomes.length === 0);
    const attempt: Attempt = { message, channel, call, fate: 'pending' };
    this.attempts.push(attempt);
    if (call) {
      const doubtful = call.attempts.filter(({ fate }) => fate !== 'not carried out');
      assert.ok(
        call.request.repeatable ? doubtful.length <= 1 : doubtful.length === 0,
        `${this.#now}: ${message.method} is sent again, and may have been carried out`,
      );
      call.attempts.push(attempt);
    }
    // A failure may be reported before `send` returns.
    if (this.random.chance(0.03)) this.#fail(attempt);
    else if (this.random.chance(0.01)) this.gone(channel);
  }

  gone(channel: FakeChannel): void {
    for (const attempt of this.attempts)
      if (attempt.channel === channel && attempt.fate === 'pending') attempt.fate = 'unknown';
    const { host } = channel;
    channel.host = undefined;
    host?.send({
      type: 'gone',
      failure: { reason: 'closed', message: 'gone', carriedOut: 'unknown' },
      final: this.random.chance(0.1),
    });
  }

  #fail(attempt: Attempt): void {
    const { id } = attempt.message;
    const choice = FAILURES[this.random.below(FAILURES.length)];
    if (!choice || id === undefined) return;
    [attempt.fate] = choice;
    attempt.channel.host?.send({ type: 'request failed', id, failure: choice[1] });
  }

  #answer(attempt: Attempt): void {
    const { id, method } = attempt.message;
    attempt.fate = 'answered';
    const unsupported = (supported: readonly string[]): object => ({
      error: { code: -32022, message: 'revision', data: { supported } },
    });
    const answer = this.random.weighted<object>(
      method === 'server/discover'
        ? [
            [4, { result: { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } }],
            [2, { error: { code: -32601, message: 'unknown method' } }],
            [1, unsupported(['2026-07-28'])],
            [1, unsupported(['2025-11-25'])],
            [1, unsupported(['1999-01-01'])],
            [1, { result: {} }],
          ]
        : method === 'initialize'
          ? [
              [
                5,
                {
                  result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } },
                },
              ],
              [1, { result: { protocolVersion: '1999-01-01' } }],
              [1, { error: { code: -32602, message: 'no' } }],
              [1, { result: null }],
            ]
          : [
              [4, { result: { content: [] } }],
              [1, { error: { code: -32000, message: 'no' } }],
              [1, {}],
            ],
    );
    this.#text(attempt, JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
    if (this.random.chance(0.1)) this.#text(attempt, JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  }

  #text({ channel, message }: Attempt, text: string): void {
    channel.host?.send({ type: 'text', text, about: channel.kind === 'http' ? message.id : undefined });
  }

  #call(): void {
    const outcomes: Call['outcomes'] = [];
    const repeatable = this.random.chance(0.5);
    const open = this.random.chance(0.05);
    const method = open ? 'subscriptions/listen' : repeatable ? 'resources/read' : 'tools/call';
    const request: OutgoingRequest = {
      ...quiet(method, { name: 'x', uri: 'x' }, 120_000),
      timeoutMs: open ? undefined : this.random.pick([1_000, 60_000]),
      maxTimeoutMs: open ? undefined : 120_000,
      repeatable: repeatable && !open,
      resolve: () => void outcomes.push('result'),
      reject: (error) => void outcomes.push(error),
    };
    this.calls.push({ request, attempts: [], outcomes });
    this.#connection.mailbox.send({ type: 'request', request });
  }

  #cancel(): void {
    const call = this.calls[this.random.below(this.calls.length)];
    if (!call) return;
    const error = new ClientError('fake', {
      reason: 'cancelled',
      message: 'cancelled',
      carriedOut: call.request.attempts === 0 ? 'no' : 'unknown',
    });
    this.#connection.mailbox.send({ type: 'cancel', request: call.request, error, why: 'test' });
  }

  /** One random step. */
  step(): void {
    const pending = this.attempts.filter(({ fate }) => fate === 'pending');
    const [handshake] = pending.filter(({ call }) => !call);
    const attempt = (this.random.chance(0.4) ? handshake : undefined) ?? pending[this.random.below(pending.length)];
    const channel = this.channels.at(-1);
    const steps: readonly (readonly [number, string, () => void])[] = [
      [6, 'call', () => this.#call()],
      [2, 'cancel', () => this.#cancel()],
      [6, 'open', () => channel?.host?.send({ type: 'opened' })],
      [12, 'answer', () => attempt && this.#answer(attempt)],
      [5, 'fail', () => attempt && this.#fail(attempt)],
      [1, 'gone', () => channel && this.gone(channel)],
      [1, 'gap', () => channel?.host?.send({ type: 'gap' })],
      [1, 'ask', () => attempt && this.#text(attempt, '{"jsonrpc":"2.0","id":7,"method":"roots/list"}')],
      [
        1,
        'garbage',
        () => attempt && this.#text(attempt, this.random.pick(['[]', '{', '7', '{"jsonrpc":"2.0","id":1}'])),
      ],
      [3, 'signed in', () => this.#signIns.shift()?.resolve()],
      [1, 'refused', () => this.#signIns.shift()?.reject(new Error('no'))],
      [6, 'time', () => this.clock.pass(this.random.pick([1, 400, 1_000, 5_000, 11_000, 65_000]))],
    ];
    const [name, act] = this.random.weighted(steps.map(([weight, name, act]) => [weight, [name, act] as const]));
    this.#now = name;
    act();
    this.trace.push(`${name}: ${this.#state()}`);
  }

  close(): void {
    this.#now = 'close';
    this.#connection.mailbox.send({ type: 'drain' });
  }

  /** Time passes, and nothing else happens. */
  async quiet(): Promise<void> {
    for (let hour = 0; hour < 4; hour += 1) {
      this.clock.pass(3_600_000);
      await microtasks();
    }
  }

  check(last: boolean): void {
    for (const { request, outcomes, attempts } of this.calls) {
      assert.ok(outcomes.length <= 1, `${request.method} has ${outcomes.length} outcomes`);
      if (last || request.timeoutMs !== undefined) assert.is(outcomes.length, 1, `${request.method} has no outcome`);
      const [outcome] = outcomes;
      if (outcome instanceof ClientError && outcome.carriedOut === 'no')
        assert.ok(
          attempts.every(({ fate }) => fate === 'not carried out'),
          `${request.method}: "${outcome.message}" says that it was not carried out, but it may have been`,
        );
    }
  }
}

async function microtasks(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
}

async function run(seed: number): Promise<void> {
  const world = new World(seed);
  try {
    await live(world);
  } catch (error) {
    const why = error instanceof Error ? error.stack : String(error);
    throw new Error(`seed ${seed}: ${why}\n${[...world.trace, ...world.log].join('\n')}`);
  }
}

async function live(world: World): Promise<void> {
  const early = world.random.chance(0.3) ? world.random.below(STEPS) : STEPS;
  for (let step = 0; step < STEPS; step += 1) {
    if (step === early) world.close();
    world.step();
    await microtasks();
  }
  // A silent server: each request ends by its own deadline.
  await world.quiet();
  world.check(false);
  world.close();
  await world.quiet();
  world.check(true);
  assert.is(world.events.filter((type) => type === 'closed').length, 1, 'closed once');
  assert.is(world.clock.timers, 0, `${world.clock.timers} timers are left`);
  for (const channel of world.channels) assert.ok(channel.closed, 'a channel is left');
  assert.equal(
    world.log.filter((text) => text.includes('failed on')),
    [],
  );
}

test(`U-23 each request has one outcome in ${SEEDS} interleavings, and none that may have run is sent twice`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) await run(seed);
});
