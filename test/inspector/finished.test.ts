/** An instance that has reached a final state: shown in that state, whenever the page is opened, and waiting for nothing. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import { createServer } from '../../src/index.ts';
import { readRecording, record } from '../../src/inspector/inspector.ts';
import { hasFinished, LIVE, Model, waitingList } from '../../src/inspector/model/index.ts';
import { connect } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('inspector: finished instances');
const folder = mkdtempSync(join(tmpdir(), 'troupe-finished-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const regions = {
  paper: { initial: 'open', states: { open: { on: { sign: 'signed' } }, signed: { type: 'final' } } },
  money: { initial: 'due', states: { due: { on: { sign: 'paid' } }, paid: { type: 'final' } } },
} as const;

for (const [name, machine, final] of [
  [
    'one region',
    createMachine({
      id: 'm',
      initial: 'out',
      states: { out: { on: { sign: 'returned' } }, returned: { type: 'final' } },
    }),
    'returned',
  ],
  ['two regions', createMachine({ id: 'm', type: 'parallel', states: regions }), 'paper.signed & money.paid'],
] as const)
  test(`a viewer that comes later sees the final state of a machine with ${name}`, async () => {
    const server = createServer({ name: 'desk', version: '1.0.0', log: () => {} });
    server.machine('paper', machine, { events: { sign: true } });
    const client = await connect(server);
    const made = await client.modern('tools/call', { name: 'paper_create', arguments: {} });
    const { handle } = Object(made.structuredContent);
    const before = join(folder, `${name} before.json`);
    const during = await record(server, before);
    await client.modern('tools/call', { name: 'paper_sign', arguments: { handle } });
    await during.close();
    const after = join(folder, `${name} after.json`);
    await (await record(server, after)).close();
    for (const file of [before, after]) {
      const model = new Model();
      for (const frame of readRecording(readFileSync(file, 'utf8')).frames) model.take(frame);
      const [line] = [...model.actors.values()].filter(({ kind }) => kind === 'handle');
      assert.ok(line);
      const standing = line.standing(LIVE);
      assert.equal(standing?.state.split(' & ').sort(), final.split(' & ').sort(), file);
      assert.equal(standing?.active.slice().sort(), final.split(' & ').sort(), 'the chart marks it');
      assert.ok(hasFinished(model, line.address, LIVE));
      assert.equal(
        waitingList(model, LIVE).filter(({ kind }) => kind === 'handle'),
        [],
      );
    }
    await server.close();
  });
