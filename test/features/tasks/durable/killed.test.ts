/** Real processes with a store in a file, each killed as soon as the bytes that tell of a task have come out of it. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../../src/core/protocol/json.ts';
import { META } from '../../../../src/core/protocol/meta.ts';
import { suite, timeLimit } from '../../../harness/door.ts';
import { atScale, PROOF } from '../../../harness/scale.ts';
import { accept, EXTENSION, idOf, inside, keysOf } from '../support.ts';

const ROUNDS = atScale({ quick: 1, full: 3, proof: 1_000 });
const FIXTURE = fileURLToPath(new URL('../../../fixtures/durable-tasks/serving.mjs', import.meta.url));
if (PROOF) timeLimit(7_200_000);

const test = suite('durable tasks of killed processes');

/** One life of the server. */
class Life {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  #sent = 0;

  constructor(file: string) {
    this.#child = spawn(process.execPath, [FIXTURE, file], { stdio: ['pipe', 'pipe', 'ignore'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** @returns the result, as soon as its bytes are here */
  async request(method: string, params: JsonObject): Promise<JsonObject> {
    this.#sent += 1;
    const _meta = {
      [META.protocolVersion]: '2026-07-28',
      [META.clientInfo]: { name: 'killer', version: '1.0.0' },
      [META.clientCapabilities]: EXTENSION,
    };
    const message = { jsonrpc: '2.0', id: this.#sent, method, params: { ...params, _meta } };
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    const { value } = await this.#lines.next();
    const answer: unknown = JSON.parse(String(value));
    if (isObject(answer) && answer.id === this.#sent && isObject(answer.result)) return answer.result as JsonObject;
    throw new Error(`expected the result of ${method}, got ${String(value)}`);
  }

  get(taskId: string): Promise<JsonObject> {
    return this.request('tasks/get', { taskId });
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}

test(`R-29: a task exists after kill -9 if its client was notified of it; ended tasks stay, and keys are used once (${ROUNDS} times)`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-tasks-'));
  const file = join(folder, 'store.db');
  const ended = new Map<string, string>();
  try {
    let life = new Life(file);
    for (let round = 1; round <= ROUNDS; round += 1) {
      const taskId = idOf(await life.request('tools/call', { name: 'name', arguments: {} }));
      await life.kill();
      life = new Life(file);
      let looked = await life.get(taskId);
      while (looked.status === 'working') looked = await life.get(taskId);
      assert.is(looked.status, 'input_required', `round ${round}`);
      assert.equal(keysOf(looked), ['elicit']);
      // It does not fit, so that it is asked again.
      await life.request('tasks/update', { taskId, inputResponses: { elicit: accept({}) } });
      while (!keysOf(looked).includes('elicit#2')) looked = await life.get(taskId);
      if (round % 2 === 0) {
        await life.kill();
        life = new Life(file);
      }
      const name = `number ${round}`;
      await life.request('tasks/update', { taskId, inputResponses: { 'elicit#2': accept({ name }) } });
      while (looked.status !== 'completed') looked = await life.get(taskId);
      ended.set(taskId, name);
      // Those of some rounds ago, and the first.
      const before = [...ended];
      for (const [id, said] of [...before.slice(0, 1), ...before.slice(-5)]) {
        const [block]: readonly unknown[] = [inside(await life.get(id), 'result', 'content')].flat();
        assert.is(isObject(block) ? block.text : block, said, `round ${round}`);
      }
    }
    await life.kill();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
