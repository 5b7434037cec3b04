/** The example of code mode, served by a process of its own that is killed: a script that waits for its user and for a time continues, and each effect happens once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Client, type ClientTask, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { startable } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { freePort } from '../../harness/free-port.ts';
import { laterBy } from '../../harness/later.ts';
import { textOf } from '../../harness/results.ts';
import { SCALE } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';

const test = suite('examples/code');
const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'troupe-code-example-'));
const offices: Office[] = [];
test.after(async () => {
  // Those of a test that failed.
  for (const office of offices) await office.kill();
  rmSync(folder, { recursive: true, force: true });
});

const HOUR_MS = 3_600_000;
/** The script of the README, which sleeps for an hour. */
const SCRIPT = readFileSync(join(root, 'examples/code/refunds.js'), 'utf8');
/** The same with a sleep of a millisecond in place of the hour. */
const SHORT = SCRIPT.replace('3_600_000', '1');

/**
 * The arguments of Node that serve the example. Quick: its compiled file, because the command takes half a second of processor time to
 * compile it, and an engine of scripts that V8 compiles once, fast.
 */
function serving(command: string): readonly string[] {
  const file = 'examples/code/server.ts';
  return SCALE === 'quick' ? ['--liftoff-only', command, 'serve', startable(file)] : [command, 'serve', file];
}

/** The example in a process, with its ledger and its state. */
class Office {
  readonly #name: string;
  readonly #waitMs: number;
  #port = 0;
  #child: ChildProcess | undefined;

  constructor(name: string, waitMs: number) {
    this.#name = name;
    this.#waitMs = waitMs;
    offices.push(this);
  }

  /** @param laterMs how far its clock is ahead */
  async open(laterMs = 0): Promise<void> {
    this.#port ||= await freePort();
    const command = join(root, 'dist/lib/cli/main.js');
    const data = join(folder, this.#name);
    const args = [...serving(command), '--http', String(this.#port), '--data', data];
    const own = { OFFICE_LEDGER: this.#ledger, OFFICE_WAIT_MS: String(this.#waitMs) };
    const env = { ...process.env, ...own, ...laterBy(laterMs) };
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    let said = '';
    child.stderr.on('data', (part: Buffer) => {
      said += part.toString('utf8');
    });
    await until(() => said.includes(this.url) || child.exitCode !== null, 'the address of the office');
    assert.is(child.exitCode, null, said);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`;
  }

  get #ledger(): string {
    return join(folder, `${this.#name}.ledger`);
  }

  /** The effects of all processes. */
  effects(): readonly string[] {
    return existsSync(this.#ledger) ? readFileSync(this.#ledger, 'utf8').trim().split('\n') : [];
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  /** @param answers called for each question before it is answered */
  client(eras: 'legacy' | 'modern', answers: () => Promise<void> = async () => {}): Promise<Client> {
    return connect(this.url, {
      eras,
      log() {},
      async elicit() {
        await answers();
        return { decision: 'approve' };
      },
    });
  }
}

const PAID = 'Paid back';
const REFUNDS = ['refunded A2', 'refunded A3'];
const LETTERS = ['bob', 'eve'].map(
  (name, at) => `wrote to ${name}@example.com: Order A${at + 2} is cancelled, and paid back.`,
);
const RESULT = {
  refunded: [
    { id: 'A2', amount: 310 },
    { id: 'A3', amount: 990 },
  ],
};

function resultIn(text: string): unknown {
  assert.match(text, /^\{/, text);
  return JSON.parse(text).result;
}

for (const era of ['legacy', 'modern'] as const)
  (era === 'modern' ? test : test.full)(
    `a client of the ${era} era finds three tools, approves each refund, and gets the result of the script`,
    async () => {
      const office = new Office(era, 20_000);
      await office.open();
      let asked = 0;
      const client = await office.client(era, async () => {
        asked += 1;
      });
      assert.equal((await client.tools()).map(({ name }) => name).sort(), [
        'describe_functions',
        'run_code',
        'search_functions',
      ]);
      const found = textOf(await client.call('search_functions', { query: 'refund an order' }));
      assert.match(found, /^shop\.refund_order\(.*!/m);
      assert.match(textOf(await client.call('describe_functions', { names: ['shop.refund_order'] })), /id: string/);
      assert.equal(resultIn(textOf(await client.call('run_code', { code: SHORT }))), RESULT);
      // Two refunds and two messages may change something.
      assert.is(asked, 4);
      assert.equal([...office.effects()].sort(), [...REFUNDS, ...LETTERS]);
      await client.close();
      await office.kill();
    },
  );

// The quick test of it is that of test/features/code/killed.test.ts.
test.full(
  'a script that sleeps becomes a task, continues in a process of the next hour, and its client gets the result',
  async () => {
    const office = new Office('sleeping', 1);
    await office.open();
    const client = await office.client('modern');
    let reported = false;
    let task: ClientTask | undefined;
    const call = client.call(
      'run_code',
      { code: SCRIPT },
      {
        onTask(id) {
          task = client.task(id);
        },
        onProgress({ message }) {
          reported ||= message === PAID;
        },
      },
    );
    // The refunds are in the journal then, and the sleep is on its way there. A call that is a task before reports its progress as the message of its status.
    await until(async () => {
      await task?.refresh();
      return task !== undefined && (reported || task.message === PAID);
    }, 'the task that sleeps');
    // The store commits in order: with the effects of this script, the sleep is in the journal.
    assert.is(resultIn(textOf(await client.call('run_code', { code: 'await sleep(1); return 1' }))), 1);
    await office.kill();
    assert.equal([...office.effects()].sort(), REFUNDS);
    await office.open(HOUR_MS);
    assert.equal(resultIn(textOf(await call)), RESULT);
    assert.equal([...office.effects()].sort(), [...REFUNDS, ...LETTERS]);
    await client.close();
    await office.kill();
  },
);

test.full('a process that is killed while the user is asked refunds each order once', async () => {
  const office = new Office('asked', 20_000);
  await office.open();
  let kills = 0;
  const client = await office.client('modern', async () => {
    if (kills > 0) return;
    kills += 1;
    await office.kill();
    await office.open();
  });
  assert.equal(resultIn(textOf(await client.call('run_code', { code: SHORT }))), RESULT);
  assert.is(kills, 1);
  assert.equal([...office.effects()].sort(), [...REFUNDS, ...LETTERS]);
  await client.close();
  await office.kill();
});
