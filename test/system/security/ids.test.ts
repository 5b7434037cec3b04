/** S-05: ids of events that were made up, changed or taken from another session find nothing. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { HttpSession } from '../../../src/core/http/http-session.ts';
import { DIALECTS } from '../../../src/core/protocol/dialects/index.ts';
import { RecordingHost } from '../../core/transports/support.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';

const test = suite('event ids');

const IDS = random(100_000);

test(`S-05: ${IDS} mutated ids lead to no event of another session`, () => {
  const host = {
    host: new RecordingHost(),
    options: { maxReplayEvents: 100, maxReplayBytes: 1_000_000, retryMs: 1_000, sessionIdleMs: 1_000 },
    interrupted: () => undefined,
  };
  const open = (id: string): HttpSession =>
    new HttpSession({ id, principal: 'ann', dialect: DIALECTS['2025-11-25'], keeper: undefined }, host, 0);
  const [mine, theirs] = [open('mine'), open('theirs')];
  const idsOf = (session: HttpSession): string[] => {
    const stream = session.open('session', undefined, undefined);
    for (let seq = 1; seq < 10; seq += 1) stream.send(`${seq}`);
    const { id } = stream;
    return Array.from({ length: 10 }, (_, seq) => `${id}_${seq}`);
  };
  const [own, foreign] = [idsOf(mine), idsOf(theirs)];
  for (const id of foreign) assert.ok(theirs.find(id), id);
  const mutated = fc
    .tuple(fc.constantFrom(...foreign), fc.nat(20), fc.string({ minLength: 1, maxLength: 3 }), fc.nat(4))
    .map(
      ([id, at, text, how]) =>
        [
          id,
          id.slice(0, at) + text + id.slice(at + 1),
          id.slice(at),
          id + text,
          `${own[0]?.slice(0, at)}${id.slice(at)}`,
        ][how] ?? id,
    );
  fc.assert(
    fc.property(mutated, (id) => {
      const found = mine.find(id);
      assert.ok(found === undefined || own.includes(id), id);
    }),
    { numRuns: IDS },
  );
});
