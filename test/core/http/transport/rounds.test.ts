/** The rounds over what HTTP clients have open: in slices, so that thousands of silent streams hold up nobody. */
import * as assert from 'uvu/assert';
import { resolveHttpOptions } from '../../../../src/core/http/http-options.ts';
import { OpenResponse, OpenResponses } from '../../../../src/core/http/open-responses.ts';
import { Sweeper } from '../../../../src/core/http/sweeper.ts';
import { WebResponse } from '../../../../src/core/http/web-request.ts';
import { suite } from '../../../harness/door.ts';
import { RecordingHost } from '../../transports/support.ts';

const test = suite('rounds');

const MANY = 600;

/** A silent stream that counts its rounds. */
class Tended extends OpenResponse {
  readonly #tended: () => void;

  constructor(tended: () => void) {
    super(new WebResponse(new AbortController().signal), Number.POSITIVE_INFINITY);
    this.#tended = tended;
  }

  override keepAlive(): void {
    this.#tended();
  }

  expire(): void {}

  closed(): void {}
}

test('R-44 silent streams are kept open in slices, each once a round, and the next round begins after the last slice', () => {
  const host = new RecordingHost();
  const { clock } = host;
  const options = resolveHttpOptions({ keepAliveMs: 1_000, stallMs: 5_000 });
  const open = new OpenResponses();
  let tended = 0;
  for (let made = 0; made < MANY; made += 1) {
    open.add(
      new Tended(() => {
        tended += 1;
      }),
    );
  }
  const rounds = new Sweeper({
    host,
    options,
    open,
    sessions: () => [],
    end() {},
    sleep() {},
  });
  for (const round of [1, 2]) {
    clock.pass(1_000);
    assert.ok(tended > (round - 1) * MANY && tended < round * MANY - MANY / 2, `${tended} were tended in one turn`);
    for (let turns = 0; tended < round * MANY; turns += 1) {
      assert.ok(turns < MANY, `${tended} were tended`);
      clock.turn();
    }
    assert.is(tended, round * MANY);
  }
  rounds.end();
  assert.is(clock.timers, 0);
});
