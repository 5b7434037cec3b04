/** The viewers of an inspector: quiet streams show that they are open, and those that nobody reads are ended. */
import * as assert from 'uvu/assert';
import { INTERNALS } from '../../src/features/server/internals.ts';
import { createServer } from '../../src/index.ts';
import type { HelloFrame } from '../../src/inspector/frames.ts';
import { Redactor } from '../../src/inspector/redaction/redact.ts';
import { LINGER_MS, Observation } from '../../src/inspector/stream/observation.ts';
import { type StreamSink, Viewers } from '../../src/inspector/stream/viewers.ts';
import { SimulatedClock } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';

const test = suite('inspector: viewers');

const hello = (): HelloFrame => ({
  ...{ type: 'hello', format: 1, server: { name: 's', version: '1' }, troupe: '0', pid: 1, epoch: 0, now: 0 },
  control: false,
  live: true,
});

function opened() {
  const clock = new SimulatedClock();
  const server = createServer({ name: 'viewed', version: '1.0.0', clock });
  const { inspection } = server[INTERNALS];
  const observation = new Observation({ inspection, clock, redactor: new Redactor(), machines: () => [] });
  return { clock, server, observation, viewers: new Viewers({ observation, clock, max: 2, hello }) };
}

function sink(reads = true) {
  const got = { frames: [] as string[], alive: 0, ended: false };
  const into: StreamSink = {
    write(frame) {
      got.frames.push(String(frame));
      return reads;
    },
    alive() {
      got.alive += 1;
    },
    end() {
      got.ended = true;
    },
  };
  return { got, into };
}

test('a quiet stream shows that it is open; one without a reader ends after a minute, and stops its observation', async () => {
  const { clock, viewers, observation } = opened();
  const quiet = sink();
  const stuck = sink(false);
  const open = viewers.open('quiet', 0, quiet.into);
  viewers.open('stuck', 0, stuck.into);
  await clock.advance(59_000);
  assert.equal([quiet.got.alive, stuck.got.alive, stuck.got.ended], [3, 0, false]);
  await clock.advance(2_000);
  assert.equal([quiet.got.alive, quiet.got.ended, stuck.got.ended], [4, false, true]);
  assert.is(viewers.size, 1);
  assert.is(stuck.got.frames.length, 1);
  viewers.gone('quiet', open);
  await clock.advance(LINGER_MS);
  assert.is(observation.attached, false);
});

test('a viewer of that name takes the place of the one before, and only the limit of them are there', () => {
  const { viewers } = opened();
  const [a, b, again] = [sink(), sink(), sink()];
  const first = viewers.open('a', 0, a.into);
  viewers.open('b', 0, b.into);
  assert.equal([viewers.admits('a'), viewers.admits('c')], [true, false]);
  viewers.open('a', 0, again.into);
  assert.equal([a.got.ended, again.got.ended, viewers.size], [true, false, 2]);
  // That the earlier stream is closed now ends nothing.
  viewers.gone('a', first);
  assert.is(viewers.size, 2);
  viewers.close('the server stops');
  assert.match(again.got.frames.at(-1) ?? '', /"bye"/);
  assert.ok(b.got.ended);
});

test('the position of a page in the stream of another process does not count for this one', () => {
  const { server, viewers, observation } = opened();
  const firstOf = (texts: readonly string[]) => texts.filter((text) => text.includes('"records":[{"seq":1,')).length;
  viewers.open('first', 0, sink().into);
  const { last } = observation.backlog;
  server.tool('more', {}, () => 'more');
  observation.flush();
  assert.ok(observation.backlog.last > last);
  const stranger = sink();
  viewers.open('stranger', last, stranger.into);
  assert.ok(firstOf(stranger.got.frames) > 0);
  const again = sink();
  viewers.open('stranger', observation.backlog.last, again.into);
  assert.not.ok(again.got.frames.some((text) => text.includes('"records"')));
  viewers.close('it is over');
});
