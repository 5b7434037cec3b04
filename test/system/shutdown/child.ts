/** A server in a process of its own, as a client of it sees it: whole messages, its stderr, and how it ended. */
import { TestClient, type Wire } from '../../../src/testing/testing.ts';
import { Fixture, nodeCommand } from '../../core/transports/support.ts';

export interface Child {
  readonly fixture: Fixture;
  readonly client: TestClient;
  /** The bytes that the child holds, at each of its reports. */
  readonly weights: readonly number[];
}

/** Spawns a script of test/fixtures/hard. */
export function spawnServer(name: string, ...args: readonly string[]): Child {
  const stdio = ['pipe', 'pipe', 'pipe', 'ipc'] as const;
  const fixture = new Fixture(`../hard/${name}`, [...stdio], (script) => [...nodeCommand(script), ...args]);
  const weights: number[] = [];
  fixture.process.on('message', (weight) => {
    weights.push(Number(weight));
    fixture.wake();
  });
  return { fixture, client: new TestClient(wireOf(fixture)), weights };
}

function wireOf(fixture: Fixture): Wire {
  const { stdin, stdout } = fixture.process;
  let rest = '';
  return {
    send: (text) => fixture.write(`${text}\n`),
    onText(listener) {
      stdout?.setEncoding('utf8').on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) listener(line);
      });
    },
    close: () => void stdin?.end(),
    closed: fixture.quiet.then(() => 'the process is gone'),
  };
}
