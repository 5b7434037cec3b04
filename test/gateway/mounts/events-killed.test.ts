/** A gateway that relays events to a webhook, and its upstream, are killed in turn while events happen. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as assert from 'uvu/assert';
import { isObject } from '../../../src/core/protocol/json.ts';
import { SELF, send } from '../../core/http/modern.ts';
import { receiver, subscription } from '../../features/events/delivery/support.ts';
import { startable } from '../../harness/compiled.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { until } from '../../harness/wait.ts';

fullOnly('kills a gateway and its upstream; the quick test of their restarts is events.test.ts');

const test = suite('a gateway of events that is killed');

/** Kills of each side. */
const KILLS = 3;
/** Events between two kills. */
const EVENTS = 5;

interface Program {
  readonly child: ChildProcess;
  readonly url: string;
}

async function started(fixture: string, ...args: readonly string[]): Promise<Program> {
  const child = spawn(process.execPath, [startable(`test/fixtures/mounts/${fixture}.ts`), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  return { child, url: String(line).trim() };
}

async function killed({ child }: Program): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return String(isObject(address) ? address.port : 0);
}

test('R-171 each event of an upstream reaches a webhook of the gateway once in order, over kills of both', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'));
  const hook = await receiver();
  const port = await freePort();
  const startUpstream = () => started('emitting', port, join(folder, 'up.db'));
  const startGateway = (url: string) => started('relaying', url, join(folder, 'gateway.db'), hook.origin);
  let upstream = await startUpstream();
  let gateway = await startGateway(upstream.url);
  try {
    await until(async () => {
      const params = subscription(hook.url, { name: 'up_note' });
      const message = await (await send(gateway.url, 'events/subscribe', { params, meta: SELF })).json();
      return isObject(message) && isObject(message.result);
    }, 'the subscription');
    let emitted = 0;
    const emit = async (): Promise<void> => {
      const { stdin, stdout } = upstream.child;
      if (!stdin || !stdout) throw new Error('expected the pipes of the upstream');
      const lines = createInterface({ input: stdout });
      for (let n = 0; n < EVENTS; n += 1) {
        emitted += 1;
        stdin.write(`${emitted}\n`);
        await once(lines, 'line');
      }
      lines.close();
    };
    const ids = (): readonly string[] => [...new Set(hook.posts.map(({ id }) => id))];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await emit();
      await killed(gateway);
      await emit();
      gateway = await startGateway(upstream.url);
      await emit();
      await killed(upstream);
      upstream = await startUpstream();
      await emit();
      const expected = emitted;
      await until(
        () => ids().length >= expected,
        () => `${expected} events, got ${ids().join(' ')}`,
      );
    }
    assert.equal(
      ids(),
      Array.from({ length: emitted }, (_, n) => `e${n + 1}`),
    );
  } finally {
    await killed(gateway);
    await killed(upstream);
    await hook.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
