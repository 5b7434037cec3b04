/** The guarantees of each actor: one turn at a time, in order; tolerated crashes and their limit; inspection without cost. */
import * as assert from 'uvu/assert';
import { type AfterTurn, type Behaviour, spawn } from '../../../src/core/kernel/actor.ts';
import { createActorSystem } from '../../../src/core/kernel/actor-system.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { InspectionRecord } from '../../../src/core/kernel/inspection/records.ts';
import type { Mailbox } from '../../../src/core/messages/mailbox.ts';
import { suite } from '../../harness/door.ts';

const test = suite('actor');

type TestMail =
  | { readonly type: 'several'; readonly texts: readonly string[] }
  | { readonly type: 'stop' }
  | { readonly type: 'fail to answer' }
  | { readonly type: 'note'; readonly text: string }
  | { readonly type: 'again' }
  | { readonly type: 'fail' };

const MORE = { type: 'several', texts: ['d'] } as const;

function make(at = { now: 0 }) {
  const heard: string[] = [];
  const crashed: string[] = [];
  const logged: string[] = [];
  const system = createActorSystem({
    clock: { ...systemClock, now: () => at.now },
    log: (_level, text) => void logged.push(text),
  });
  const actor = spawn<TestMail>(
    { kind: 'registry', address: 'test' },
    system,
    (self: Mailbox<TestMail>, afterwards: AfterTurn): Behaviour<TestMail> => ({
      policy: { restarts: 2, windowMs: 1_000 },
      state: () => `heard ${heard.length}`,
      receive(mail) {
        if (mail.type === 'fail' || mail.type === 'fail to answer') throw new Error('as asked');
        if (mail.type === 'several') {
          for (const text of mail.texts) self.send(text === 'more' ? MORE : { type: 'note', text });
          afterwards((text) => void heard.push(text), 'afterwards');
          return;
        }
        if (mail.type === 'stop') {
          self.send({ type: 'note', text: 'late' });
          return actor.stop('as asked');
        }
        if (mail.type === 'again') {
          self.send({ type: 'note', text: 'second' });
          heard.push('first');
          return;
        }
        heard.push(mail.text);
      },
      crashed(mail, error, quarantined) {
        crashed.push(
          `${mail.type}: ${error instanceof Error ? error.message : ''}${quarantined ? ' (quarantined)' : ''}`,
        );
        if (mail.type === 'fail to answer') throw new Error('cannot answer');
      },
    }),
  );
  return { actor, mailbox: actor.mailbox, heard, crashed, logged, inspection: system.inspection };
}

test('mail sent while it acts waits its turn', () => {
  const { mailbox, heard } = make();
  mailbox.send({ type: 'again' });
  assert.equal(heard, ['first', 'second']);
});

test('mail is processed in the order in which it arrives, and the work for the end of a turn after all of it', () => {
  const { mailbox, heard } = make();
  mailbox.send({ type: 'several', texts: ['a', 'more', 'b', 'more', 'c'] });
  assert.equal(heard, ['a', 'b', 'c', 'd', 'd', 'afterwards', 'afterwards', 'afterwards']);
});

test('an actor that stops itself drops the mail that waits', () => {
  const { mailbox, heard } = make();
  mailbox.send({ type: 'stop' });
  mailbox.send({ type: 'note', text: 'later' });
  assert.equal(heard, []);
});

test('an answer for a crash that throws is an incident, and the next mail is served', () => {
  const { mailbox, heard, logged } = make();
  mailbox.send({ type: 'fail to answer' });
  mailbox.send({ type: 'note', text: 'alive' });
  assert.equal(heard, ['alive']);
  assert.match(logged.join(), /incident \S+ in test, which answered for a crash: Error: cannot answer/);
});

test('mail that makes it throw is answered for, and the next is served', () => {
  const { mailbox, heard, crashed } = make();
  mailbox.send({ type: 'fail' });
  mailbox.send({ type: 'note', text: 'alive' });
  assert.equal(heard, ['alive']);
  assert.equal(crashed, ['fail: as asked']);
});

test('crashing more often than the policy bears sets it aside, and its later mail is still answered for', () => {
  const { mailbox, heard, crashed } = make();
  for (let i = 0; i < 3; i += 1) mailbox.send({ type: 'fail' });
  mailbox.send({ type: 'note', text: 'too late' });
  assert.equal(heard, []);
  assert.is(crashed.length, 4);
  assert.match(crashed[2] ?? '', /quarantined/);
  assert.match(crashed[3] ?? '', /note: test crashed too often.*quarantined/);
});

test('crashes outside of the window are forgotten', () => {
  const at = { now: 0 };
  const { mailbox, heard, crashed } = make(at);
  for (let i = 0; i < 10; i += 1) {
    at.now += 600;
    mailbox.send({ type: 'fail' });
  }
  mailbox.send({ type: 'note', text: 'still here' });
  assert.equal(heard, ['still here']);
  assert.is(crashed.length, 10);
});

test('a stopped actor drops its mail', () => {
  const { actor, mailbox, heard } = make();
  actor.stop('done');
  mailbox.send({ type: 'note', text: 'x' });
  assert.equal(heard, []);
});

test('a late listener first receives the living actors and their states', () => {
  const { mailbox, inspection } = make();
  mailbox.send({ type: 'note', text: 'before' });
  const records: InspectionRecord[] = [];
  inspection.listen((record) => records.push(record));
  assert.equal(
    records.map((record) => [record.type, 'state' in record ? record.state : '']),
    [
      ['created', ''],
      ['state', 'heard 1'],
    ],
  );
});

test('each record names the record that caused it', () => {
  const { mailbox, inspection } = make();
  const records: InspectionRecord[] = [];
  inspection.listen((record) => records.push(record));
  mailbox.send({ type: 'again' });
  const mails = records.filter((record) => record.type === 'mail');
  assert.is(mails.length, 2);
  assert.is(mails[1]?.cause, mails[0]?.seq);
  const state = records.filter((record) => record.type === 'state').at(-1);
  assert.is(state?.cause, mails[1]?.seq);
});

test('a listener that throws receives nothing more, and the others do', () => {
  const { mailbox, heard, inspection } = make();
  let calls = 0;
  inspection.listen(() => {
    calls += 1;
    throw new Error('bad observer');
  });
  mailbox.send({ type: 'note', text: 'fine' });
  assert.equal(heard, ['fine']);
  assert.is(calls, 1);
  assert.is(inspection.on, false);
});

test('nothing is recorded without a listener', () => {
  const { mailbox, inspection } = make();
  const stop = inspection.listen(() => {});
  stop();
  assert.is(inspection.on, false);
  const before = inspection.record({ type: 'gone', actor: 'probe', why: '' });
  mailbox.send({ type: 'note', text: 'x' });
  assert.is(inspection.record({ type: 'gone', actor: 'probe', why: '' }), before + 1);
});
