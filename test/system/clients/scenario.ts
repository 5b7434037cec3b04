/** What every official client must be able to do with the everything server, told once for every client and revision. */
import * as assert from 'uvu/assert';
import { isModernRevision, type Revision } from '../../../src/core/protocol/revisions.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { failure, type OfficialClient } from './official.ts';
import { readingTests } from './reading.ts';
import { type Stage, textOf } from './stage.ts';
import { talkingTests } from './talking.ts';
import { toolTests } from './tools.ts';

export const EVERYTHING = 'examples/everything/stdio.ts';

/**
 * Registers the whole scenario for one client.
 *
 * @param who names the client in the titles
 * @param revision the one that it must come to speak
 * @param more registers what only clients of this kind can do
 */
export function scenario<C extends OfficialClient>(
  who: string,
  revision: Revision,
  connect: () => Promise<C>,
  { cancelsByClosing = false, more }: { cancelsByClosing?: boolean; more?: (stage: Stage<C>) => void } = {},
): void {
  const test = suite(`${who} at ${revision}`);
  const modern = isModernRevision(revision);
  let connected: C | undefined;
  const client = (): C => {
    if (!connected) throw new Error('the client did not connect');
    return connected;
  };
  const stage: Stage<C> = {
    test,
    modern,
    cancelsByClosing,
    client,
    since: (first) => revision >= first,
    call: (name, args) => client().callTool(name, args),
    async refusal(refused) {
      await failure(refused);
      return Object(client().wire.received.findLast(({ error }) => error !== undefined)?.error);
    },
  };
  const { since, call } = stage;

  test.before(async () => {
    connected = await connect();
  });
  test.afterEach(() => {
    assert.equal(client().wire.faults.splice(0), []);
    assert.equal(client().wire.noise.splice(0), []);
  });

  test('agrees on the revision and learns who serves', async () => {
    const { introduction } = client();
    assert.is(client().revision, revision);
    assert.match(String(introduction.instructions), 'Call any tool');
    const info = Object(introduction.info);
    assert.is(info.name, 'everything');
    assert.is(info.title, since('2025-06-18') ? 'Everything' : undefined);
    assert.is(info.icons === undefined, !since('2025-11-25'));
    assert.equal(introduction.capabilities.tools, { listChanged: true });
    assert.equal(introduction.capabilities.resources, { subscribe: true, listChanged: true });
    assert.is(introduction.capabilities.completions === undefined, !since('2025-03-26'));
    const seen = JSON.parse(textOf(await call('describe_client')));
    assert.is(seen.revision, revision);
    assert.is(seen.era, modern ? 'modern' : 'legacy');
    assert.is(seen.session, !modern);
    assert.match(seen.client.name, /^official-v/);
  });

  toolTests(stage);
  readingTests(stage);
  talkingTests(stage);

  if (!modern)
    test('pings', async () => {
      assert.equal(await client().ping(), {});
    });

  more?.(stage);

  test('closes, and the server exits with code 0 within two seconds', async () => {
    const started = performance.now();
    await client().close();
    assert.is(await client().wire.exit(), 0);
    assertFigure(performance.now() - started, 2_000, 'the end of the server');
  });
}
