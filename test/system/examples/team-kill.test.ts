/**
 * The team's board over three nodes and a PostgreSQL while nodes are killed: two people and an agent work on it, a person approves what
 * the agent removes, GitHub closes cards, schedules archive them, and subscribers poll, stream and receive a webhook.
 */
import { createHmac } from 'node:crypto';
import { type Client, ClientError, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { type Receiver, receiver, SECRET } from '../../features/events/delivery/support.ts';
import { conclusive, fullOnly, timeLimit } from '../../harness/door.ts';
import { postgresSuite } from '../../harness/postgres.ts';
import { textOf } from '../../harness/results.ts';
import { atScale } from '../../harness/scale.ts';
import { elapse, until } from '../../harness/wait.ts';
import { Patience } from '../cluster/patience.ts';
import { ClusterStage } from '../cluster/stage.ts';
import { Random } from '../simulation/random.ts';

fullOnly('kills the nodes of the example; its quick test is team.test.ts');

const KILLS = atScale({ quick: 2, full: 12, proof: 100 });
/** Milliseconds between two kills, besides the start of the next process. */
const PAUSE_MS = 1_000;
/** Milliseconds between two acts of one member. */
const ACT_MS = 150;
/** Milliseconds between two slots of the schedule. */
const SLOT_MS = 2_000;
/** The first wait for an answer. */
const ANSWER_MS = 5_000;
const GITHUB_SECRET = 'a secret of this test';
/** The origin that the pages of approvals are served from, as `TEAM_URL` says by default. */
const ORIGIN = 'http://127.0.0.1:3000';
const board = 'team';

timeLimit(180_000 + KILLS * 30_000);
const test = postgresSuite('examples/team over kills');

const Board = z.object({
  view: z.object({
    cards: z.array(z.object({ id: z.number(), title: z.string(), by: z.string(), done: z.boolean() })),
    next: z.number(),
    removed: z.number(),
    archived: z.number(),
    nights: z.array(z.object({ night: z.string(), archived: z.number(), missed: z.number() })),
  }),
});
const Cards = z.object({ view: z.object({ cards: z.array(z.object({ id: z.number(), title: z.string() })) }) });

/** A member with a client, who repeats a call until it is answered. */
class Member {
  readonly name: string;
  readonly client: Client;
  repeated = 0;
  #calls = 0;

  constructor(name: string, client: Client) {
    this.name = name;
    this.client = client;
  }

  static async of(name: string, url: string): Promise<Member> {
    const client = await connect({ url, headers: { authorization: `Bearer ${name}` } }, { eras: 'modern', log() {} });
    return new Member(name, client);
  }

  /** Calls a tool with a key, until there is a result. */
  async call(tool: string, args: JsonObject = {}) {
    this.#calls += 1;
    const key = tool.endsWith('_get') ? {} : { idempotencyKey: `${this.name} ${this.#calls}` };
    let result: Awaited<ReturnType<Client['call']>> | undefined;
    let last = '';
    const patience = new Patience(ANSWER_MS);
    await until(
      async () => {
        try {
          result = await this.client.call(tool, { board, ...key, ...args }, { timeoutMs: patience.ms });
        } catch (error) {
          patience.failed(error);
          if (!(error instanceof ClientError)) throw error;
          last = error.message;
          this.repeated += 1;
          await elapse(error.retryAfterMs ?? 0, 'the server says when it takes the call');
        }
        return result !== undefined;
      },
      () => `a result of ${tool} for ${this.name}: ${last}`,
    );
    if (!result) throw new Error('expected a result after the wait for it');
    return result;
  }

  /** Adds a card. @returns its number, once that is acknowledged */
  async add(title: string): Promise<number> {
    const result = await this.call('board_add', { title });
    if (result.isError) throw new Error(`${this.name} adds "${title}": ${textOf(result)}`);
    const card = Cards.parse(result.structuredContent).view.cards.find((each) => each.title === title);
    // The answer to a repeated call shows the board as it is now, and this card may be gone from it.
    if (card) return card.id;
    throw new Error(`the card "${title}" was acknowledged and is not on the board`);
  }
}

/** Delivers a merge of GitHub until it is answered with 200. */
async function merge(origin: string, card: number): Promise<void> {
  const body = JSON.stringify({ action: 'closed', pull_request: { merged: true, title: `#${card} A pull request` } });
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'pull_request',
    'x-github-delivery': `d${card}`,
    'x-hub-signature-256': `sha256=${createHmac('sha256', GITHUB_SECRET).update(body).digest('hex')}`,
  };
  const sent = { method: 'POST', body, headers };
  const patience = new Patience(ANSWER_MS);
  await until(async () => {
    const signal = AbortSignal.timeout(patience.ms);
    const status = await fetch(`${origin}/hooks/github`, { ...sent, signal }).then(
      (answer) => answer.status,
      (error: unknown) => {
        patience.failed(error);
        return 0;
      },
    );
    assert.ok(![400, 401, 404, 413].includes(status), `GitHub got ${status}`);
    return status === 200;
  }, `a 200 for the merge of ${card}`);
}

/** Approves every call that waits for Ada, on its page. @returns the ids of approvals that were acknowledged */
async function approveAll(origin: string): Promise<readonly string[]> {
  const cookie = 'person=ada';
  const page = async (path: string): Promise<string> =>
    (await fetch(`${origin}${path}`, { headers: { cookie } })).text();
  const [, waiting = ''] = /Calls that wait for you(.*?)(?:<h1>|$)/s.exec(await page('/approvals')) ?? [];
  const given: string[] = [];
  for (const [, id = ''] of waiting.matchAll(/href="approvals\/([^"]+)"/g)) {
    const mark = /name="mark" value="([^"]+)"/.exec(await page(`/approvals/${id}`))?.[1] ?? '';
    const headers = { cookie, origin: ORIGIN, 'content-type': 'application/x-www-form-urlencoded' };
    const body = new URLSearchParams({ mark, decision: 'approve' }).toString();
    const sent = { method: 'POST', headers, body, redirect: 'manual' } as const;
    if ((await fetch(`${origin}/approvals/${id}`, sent)).status === 303) given.push(id);
  }
  return given;
}

const dedupe = (ids: readonly string[]): readonly string[] => [...new Set(ids)];

test(`R-64, R-81, R-84, R-90: the team's board over three nodes loses and doubles nothing that was acknowledged, over ${KILLS} kills`, async () => {
  const hook: Receiver = await receiver();
  const stage = await ClusterStage.open({
    program: 'test/fixtures/cluster/team.ts',
    env: { GITHUB_SECRET, RECEIVER: hook.origin },
  });
  const origin = stage.url.replace('/mcp', '');
  const [ada, bob, agent] = await Promise.all(['ada', 'bob', 'agent'].map((name) => Member.of(name, stage.url)));
  assert.ok(ada && bob && agent);

  // The acknowledged acts.
  const added = new Map<number, string>();
  const merged: number[] = [];
  const removed: number[] = [];
  const approved: string[] = [];
  added.set(await ada.add('The first card'), 'The first card');
  await ada.call('board_invite', { who: 'bob', role: 'member' });
  await ada.call('board_invite', { who: 'agent', role: 'agent' });

  // The subscribers begin before the first merge.
  const polled: string[] = [];
  const streamed: string[] = [];
  const follow = async (member: Member, via: 'poll' | 'stream', ids: string[], since: string): Promise<void> => {
    for await (const event of member.client.events('board.merged', { board }, { via, since })) {
      if (event.gap) throw new Error(`${via} has a gap`);
      ids.push(event.id);
    }
  };
  const delivery = { mode: 'webhook', url: hook.url, secret: SECRET };
  await bob.client.request('events/subscribe', { name: 'board.merged', arguments: { board }, delivery });
  const ends = { poll: '', stream: '' };
  const start = async (member: Member): Promise<string> => {
    const params = { name: 'board.merged', arguments: { board }, cursor: null };
    return z.object({ cursor: z.string() }).parse(await member.client.request('events/poll', params)).cursor;
  };
  const [since, sinceStream] = [await start(bob), await start(ada)];
  const following = [
    follow(bob, 'poll', polled, since).catch((error: unknown) => {
      ends.poll = String(error);
    }),
    follow(ada, 'stream', streamed, sinceStream).catch((error: unknown) => {
      ends.stream = String(error);
    }),
  ];

  let working = true;
  const repeatedly = async (act: (count: number) => Promise<unknown>, pauseMs = ACT_MS): Promise<void> => {
    for (let count = 1; working; count += 1) {
      await act(count);
      await elapse(pauseMs, 'a member thinks');
    }
  };
  const open: number[] = [];
  const failures: unknown[] = [];
  const members = [
    ...[ada, bob].map((person) =>
      repeatedly(async (count) => {
        const title = `${person.name}'s card ${count}`;
        const card = await person.add(title);
        added.set(card, title);
        open.push(card);
      }),
    ),
    repeatedly(async () => {
      const card = open.shift();
      if (card === undefined) return;
      await merge(origin, card);
      merged.push(card);
    }),
    repeatedly(async (count) => {
      const title = `the agent's card ${count}`;
      const card = await agent.add(title);
      added.set(card, title);
      for (;;) {
        // An approval is bound to the arguments, so each repetition has the same key.
        const result = await agent.call('board_remove', { card, idempotencyKey: `remove ${card}` });
        if (!result.isError) break;
        // The end of an approval whose process was killed is unknown. The agent looks, as its text says.
        const { view } = Cards.parse((await agent.call('board_get')).structuredContent);
        if (!view.cards.some(({ id }) => id === card)) break;
        await elapse(ACT_MS, 'the agent waits for the approval');
      }
      removed.push(card);
    }),
  ].map((act) =>
    act.catch((error: unknown) => {
      failures.push(error);
      working = false;
    }),
  );

  let approving = true;
  const approver = (async () => {
    while (approving) {
      approved.push(...(await approveAll(origin).catch(() => [])));
      await elapse(ACT_MS, 'ada thinks');
    }
  })();

  const random = new Random(Date.now());
  for (let kill = 1; kill <= KILLS && working; kill += 1) {
    await elapse(PAUSE_MS, 'the nodes serve');
    const node = stage.nodes[random.below(stage.nodes.length)];
    await node?.kill();
    await node?.start();
  }
  working = false;
  // The agent waits for its last approval.
  await Promise.all(members);
  approving = false;
  await approver;
  assert.equal(failures.map(String), []);

  // Each merge arrives by each way.
  for (const [way, ids] of [
    ['poll', () => polled],
    ['stream', () => streamed],
    ['webhook', () => hook.posts.map(({ id }) => id)],
  ] as const)
    await until(
      () => dedupe(ids()).length >= merged.length,
      () => `${dedupe(ids()).length} of ${merged.length} merges by ${way} ${JSON.stringify(ends)}`,
    );
  let view: z.infer<typeof Board>['view'] | undefined;
  await until(
    async () => {
      ({ view } = Board.parse((await ada.call('board_get')).structuredContent));
      return view.archived === merged.length;
    },
    () => `the last cards to be archived: ${merged.length} merged, ${JSON.stringify(view)?.slice(-1_500)}`,
  );
  if (!view) throw new Error('the board has no view');
  const { cards, next, archived, nights } = view;
  const posted = hook.posts.map(({ id }) => id);
  const repeated = ada.repeated + bob.repeated + agent.repeated;
  process.stdout.write(
    `examples/team: ${KILLS} kills: ${added.size} cards added, ${removed.length} removed with ${approved.length} approvals, ${merged.length} merged, ` +
      `${archived} archived in ${nights.length} slots; ${repeated} calls were sent again; ` +
      `${posted.length - dedupe(posted).length} of ${posted.length} deliveries were repeats\n`,
  );
  conclusive(() => {
    assert.is(next - 1, added.size, 'each card was added once');
    assert.is(view?.removed, removed.length);
    assert.is(archived, merged.length);
    const left = [...added].filter(([card]) => !merged.includes(card) && !removed.includes(card));
    assert.equal(
      cards.map(({ id, title }) => [id, title]),
      left.sort(([a], [b]) => a - b),
    );
    // Each slot changed the board once, in order.
    const slots = nights.map(({ night }) => night);
    assert.equal(slots, dedupe(slots).toSorted());
    for (const [place, { night, missed }] of nights.entries()) {
      const before = nights[place - 1];
      if (before)
        assert.is(Date.parse(night) - Date.parse(before.night), SLOT_MS * (missed + 1), 'each slot was run or counted');
    }
    // One order for all subscribers, and each merge once.
    assert.is(dedupe(polled).length, merged.length);
    assert.equal(streamed, polled);
    assert.equal(dedupe(polled), polled);
    assert.equal(dedupe(posted), polled);
    assert.equal(
      hook.posts.map(({ body }) => Object(body.data).card).filter((card) => !merged.includes(card)),
      [],
    );
  });
  await Promise.all([ada, bob, agent].map(({ client }) => client.close()));
  await Promise.all(following);
  await stage.close();
  await hook.close();
});
