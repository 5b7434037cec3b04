/** The example of approvals, run as a process: one person approves the deletions of another, and a kill at any step makes none of them run twice. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { until } from '../../harness/wait.ts';
import { type Served, serve } from '../clients/http-wire.ts';

const test = suite('examples/approvals');
const folder = mkdtempSync(join(tmpdir(), 'troupe-approvals-example-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

type Era = 'legacy' | 'modern';

/** How long a call works, in the environment of its process. */
type Work = { readonly [name in `APPROVALS_${'BEFORE' | 'AFTER'}_MS`]?: string };

/** Longer than any process of this test lives. */
const HOUR = '3600000';

/** The example in a process, with its ledger and its people. */
class Desk {
  readonly #ledger: string;
  readonly #data: string;
  readonly #work: Work;
  #served: Served | undefined;
  /** What the process has said so far, its audit among it. */
  said = '';
  /** The approval that Olga has given last. */
  approved = '';

  constructor(name: string, work: Work = {}) {
    this.#ledger = join(folder, `${name}.ledger`);
    this.#data = join(folder, `${name}.db`);
    this.#work = work;
  }

  async open(): Promise<void> {
    const env = { APPROVALS_LEDGER: this.#ledger, ...this.#work };
    const served = await serve('examples/approvals/http.ts', env, ['--data', this.#data]);
    this.#served = served;
    this.said = '';
    served.child.stderr?.on('data', (part: Buffer) => {
      this.said += part.toString('utf8');
    });
  }

  get url(): string {
    return this.#served?.url ?? '';
  }

  /** The effects of all processes. */
  effects(): readonly string[] {
    return existsSync(this.#ledger) ? readFileSync(this.#ledger, 'utf8').trim().split('\n') : [];
  }

  client(era: Era = 'modern'): Promise<Client> {
    return connect({ url: this.url, headers: { authorization: 'Bearer ada' } }, { eras: era, log() {} });
  }

  /** The list, or the page of an approval, as a browser of a person gets it. */
  async page(person: string, id?: string): Promise<string> {
    const path = id === undefined ? '/approvals' : `/approvals/${id}`;
    return (await fetch(new URL(path, this.url), { headers: { cookie: `person=${person}` } })).text();
  }

  /** Sends the form of Olga's page in the browser of a person. @returns the status */
  async decide(person: string, id: string, decision: string, origin = new URL(this.url).origin): Promise<number> {
    const mark = /name="mark" value="([^"]+)"/.exec(await this.page('olga', id))?.[1] ?? '';
    const headers = { cookie: `person=${person}`, origin, 'content-type': 'application/x-www-form-urlencoded' };
    const body = new URLSearchParams({ mark, decision }).toString();
    const sent = { method: 'POST', headers, body, redirect: 'manual' } as const;
    return (await fetch(new URL(`/approvals/${id}`, this.url), sent)).status;
  }

  /** The id of the call that waits for a person; undefined if none does. */
  async waits(person = 'olga'): Promise<string | undefined> {
    const [, waiting = ''] = /Calls that wait for you(.*?)(?:<h1>|$)/s.exec(await this.page(person)) ?? [];
    return /href="approvals\/([^"]+)"/.exec(waiting)?.[1];
  }

  /** @returns the id */
  async approve(): Promise<string> {
    await until(async () => (await this.waits()) !== undefined, 'a call that waits for Olga');
    const id = (await this.waits()) ?? '';
    assert.is(await this.decide('olga', id, 'approve'), 303);
    this.approved = id;
    return id;
  }

  async kill(): Promise<void> {
    const child = this.#served?.child;
    const gone = new Promise((resolve) => child?.once('exit', resolve));
    child?.kill('SIGKILL');
    await gone;
  }

  close(): Promise<unknown> {
    return this.#served?.end() ?? Promise.resolve();
  }
}

const FILE = { name: 'plan.txt' };
const DELETED = 'deleted plan.txt';

test('Ada deletes a file once Olga has approved it on the page, as a client of each era', async () => {
  const desk = new Desk('eras');
  await desk.open();
  for (const era of ['legacy', 'modern'] as const) {
    const before = desk.effects().length;
    const ada = await desk.client(era);
    assert.match(
      textOf(await ada.call('files_delete_file', FILE)),
      /needs the approval of somebody with the scope ops/,
    );
    // Ada cannot approve it, and neither can another page in the browser of Olga.
    assert.is(await desk.waits('ada'), undefined);
    const id = (await desk.waits()) ?? '';
    assert.is(await desk.decide('ada', id, 'approve'), 403);
    assert.is(await desk.decide('olga', id, 'approve', 'http://evil.example'), 403);
    assert.match(await desk.page('olga', id), /which is &#34;delete_file&#34; of the server &#34;files&#34; behind it/);
    await desk.approve();
    assert.is(textOf(await ada.call('files_delete_file', FILE)), DELETED);
    const refund = { order: era, amount: 20 };
    assert.is(textOf(await ada.call('orders_refund', refund)), `refunded 20 for ${era}`);
    assert.match(textOf(await ada.call('orders_refund', { ...refund, amount: 200 })), /needs the approval/);
    assert.is(await desk.decide('olga', (await desk.waits()) ?? '', 'deny'), 303);
    assert.match(textOf(await ada.call('orders_refund', { ...refund, amount: 200 })), /it was denied/);
    assert.equal(desk.effects().slice(before), [DELETED, `refunded 20 for ${era}`]);
    for (const noun of ['customer', 'ticket']) {
      const remove = (): Promise<string> => ada.call(`${noun}s_delete_${noun}`, { id: era }).then(textOf);
      assert.match(textOf(await ada.call(`${noun}s_get_${noun}`, { id: era })), /read/);
      assert.match(await remove(), /needs the approval/);
      await desk.approve();
      assert.match(await remove(), new RegExp(`deleted /${noun}s/${era}`));
    }
    assert.is(desk.effects().length, before + 4);
    await ada.close();
  }
  await desk.close();
});

/** The moments of a kill, and what is true afterwards: the state on the page, and the number of deletions in the end. */
const KILLS: readonly {
  readonly at: string;
  readonly work?: Work;
  reach(desk: Desk, ada: Client): Promise<void>;
  readonly state: 'waits' | 'approved' | 'unknown' | undefined;
  readonly effects: number;
}[] = [
  { at: 'before it is asked', reach: async () => {}, state: undefined, effects: 0 },
  {
    at: 'asked',
    reach: async (_, ada) => void (await ada.call('files_delete_file', FILE)),
    state: 'waits',
    effects: 1,
  },
  {
    at: 'approved',
    async reach(desk, ada) {
      await ada.call('files_delete_file', FILE);
      await desk.approve();
    },
    state: 'approved',
    effects: 1,
  },
  {
    at: 'just after its use',
    work: { APPROVALS_BEFORE_MS: HOUR },
    async reach(desk, ada) {
      await ada.call('files_delete_file', FILE);
      await desk.approve();
      ada.call('files_delete_file', FILE).catch(() => {});
      await until(() => desk.said.includes('"outcome":"used"'), 'the use in the audit');
    },
    state: 'unknown',
    effects: 0,
  },
  {
    at: 'running',
    work: { APPROVALS_AFTER_MS: HOUR },
    async reach(desk, ada) {
      await ada.call('files_delete_file', FILE);
      await desk.approve();
      ada.call('files_delete_file', FILE).catch(() => {});
      await until(() => desk.effects().length > 0, 'the deletion');
    },
    state: 'unknown',
    effects: 1,
  },
];

for (const { at, work, reach, state, effects } of KILLS)
  test.full(`a process that is killed ${at} deletes the file ${effects === 0 ? 'never' : 'once'}`, async () => {
    const desk = new Desk(at.replaceAll(' ', '-'), work);
    await desk.open();
    const first = await desk.client();
    await reach(desk, first);
    await desk.kill();
    await first.close().catch(() => {});
    await desk.open();
    const ada = await desk.client();
    if (state === 'waits') await desk.approve();
    if (state === 'unknown') assert.match(await desk.page('olga', desk.approved), /This call is unknown/);
    if (state === 'waits' || state === 'approved')
      assert.is(textOf(await ada.call('files_delete_file', FILE)), DELETED);
    assert.is(desk.effects().length, effects);
    // Another call needs another approval.
    assert.match(textOf(await ada.call('files_delete_file', FILE)), /needs the approval/);
    assert.is(desk.effects().length, effects);
    await ada.close();
    await desk.close();
  });
