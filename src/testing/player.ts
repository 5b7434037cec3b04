/** Plays a transcript against a server: sends the client's messages and checks the server's messages. */
import type { JsonValue } from '../core/protocol/json.ts';
import { isServer, type Server } from '../features/server/server.ts';
import { openWire } from './connect.ts';
import { difference, fillIn, type Values } from './match-json.ts';
import { type SimulatedClock, settled } from './simulated-clock.ts';
import { TestClient, type TestClientOptions } from './test-client.ts';
import { parseTranscript, type Step } from './transcript.ts';
import type { Wire } from './wire.ts';

export interface PlayOptions extends TestClientOptions {
  /** The clock of the server, which `⏱` advances. */
  readonly clock?: SimulatedClock;
  /** Initial values of named wildcards: `{ revision: '2025-06-18' }` for `"…revision"`. */
  readonly values?: Readonly<Record<string, JsonValue>>;
}

/**
 * Plays a transcript over a connection of its own, and closes that. Every message that the server sends must be expected, in
 * its order; what is left at the end fails too.
 *
 * @param target a server inside the process, or what opens a connection to another; `∅` and the end of the transcript can be
 *   sure of silence only for the former
 * @throws {SyntaxError} for a malformed transcript
 * @throws {Error} for the first step that fails: its line, what was expected, what came
 * @example await playTranscript(await readFile('ping.txt', 'utf8'), server, { clock });
 */
export async function playTranscript(
  text: string,
  target: Server | (() => Wire | Promise<Wire>),
  options: PlayOptions = {},
): Promise<void> {
  const { steps } = parseTranscript(text);
  const client = new TestClient(await (isServer(target) ? openWire(target) : target()), options);
  const values: Values = new Map(Object.entries(options.values ?? {}));
  let line = 1;
  try {
    for (const step of steps) {
      line = step.line;
      await play(step, client, values, options.clock);
    }
    await silence(client, 'the end');
    await client.close();
  } catch (error) {
    client.close().catch(() => {});
    const problem = error instanceof Error ? error.message : String(error);
    throw new Error(`transcript line ${line}: ${problem}`, { cause: error });
  }
}

async function play(step: Step, client: TestClient, values: Values, clock: SimulatedClock | undefined): Promise<void> {
  switch (step.kind) {
    case 'send': {
      const filled = fillIn(step.message, values);
      // Send the text as written if possible, to preserve the author's order of members, escapes and duplicate keys.
      const same = JSON.stringify(filled) === JSON.stringify(step.message);
      return client.raw(same ? step.text : JSON.stringify(filled));
    }
    case 'raw':
      return client.raw(step.text);
    case 'expect': {
      const shown = JSON.stringify(step.message);
      const got = await client.next(undefined, `← ${shown}`);
      const found = difference(step.message, got, values);
      if (found !== undefined) throw new Error(`${found}\n  expected ← ${shown}\n  got      ← ${JSON.stringify(got)}`);
      return;
    }
    case 'advance':
      if (!clock) throw new Error('⏱ needs the clock of the server: playTranscript(text, server, { clock })');
      return clock.advance(step.ms);
    case 'nothing':
      return silence(client, '∅');
  }
}

async function silence(client: TestClient, where: string): Promise<void> {
  await settled();
  const rest = client.rest();
  if (rest.length > 0)
    throw new Error(
      `${where}: expected nothing more, got${rest.map((message) => `\n  ← ${JSON.stringify(message)}`).join('')}`,
    );
}
