/** The inbound door under hostile input, through the whole server: every request is answered once, nothing else is, and nothing is left behind. */
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { METHODS } from '../../../src/core/protocol/methods.ts';
import { LEGACY_REVISIONS, type Revision } from '../../../src/core/protocol/revisions.ts';
import { SKILL_METHODS } from '../../../src/features/skills/skill-methods.ts';
import { TASK_METHODS } from '../../../src/features/tasks/task-methods.ts';
import { settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { random } from '../../harness/scale.ts';
import { busy, Conversation } from './conversation.ts';
import { type Input, input } from './hostile.ts';
import { MESSAGES, opening, SELF } from './messages.ts';
import { openTarget, type Target } from './target.ts';

const INPUTS = random(10_000);
/** Inputs on one connection, at most: half of it on average. */
const LONGEST = 100;
const RUNS = random(260);
const seed = Number(process.env.TROUPE_FUZZ_SEED ?? 20_261_121);
process.stdout.write(`fuzz seed ${seed} (TROUPE_FUZZ_SEED chooses another)\n`);

const test = suite('hostile input');

const uncaught: unknown[] = [];
const keep = (error: unknown): void => void uncaught.push(error);
test.before(() => {
  process.on('unhandledRejection', keep);
  process.on('uncaughtException', keep);
});
test.after(() => {
  process.off('unhandledRejection', keep);
  process.off('uncaughtException', keep);
});

interface Run {
  /** The session that is open before the first input; none for a client of which nothing is known. */
  readonly session: Revision | undefined;
  readonly watched: boolean;
  readonly inputs: readonly Input[];
}

const run: fc.Arbitrary<Run> = fc.record({
  session: fc.constantFrom(undefined, ...LEGACY_REVISIONS, '2025-03-26' as const),
  watched: fc.boolean(),
  inputs: fc.array(input, { maxLength: LONGEST, size: 'max' }),
});

const say = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message });

async function converse(target: Target, { session, watched, inputs }: Run): Promise<void> {
  const stop = watched ? target.server.inspect(() => {}) : undefined;
  const conversation = new Conversation(target.connect());
  if (session) {
    conversation.send(say({ id: 'open', method: 'initialize', params: opening(session) }));
    conversation.send(say({ method: 'notifications/initialized' }));
  }
  for (const { text, pause } of inputs) {
    conversation.send(text);
    if (pause) await settled();
  }
  target.release();
  await settled();
  conversation.model.finished();
  await worksStill(conversation);
  stop?.();
  assert.equal(busy(target.server), []);
  await conversation.close();
}

/** A good call, in each era that this connection speaks by now. */
async function worksStill(conversation: Conversation): Promise<void> {
  const { model, got } = conversation;
  for (const meta of [{ _meta: SELF }, ...(model.session === undefined ? [] : [{}])]) {
    const params = { name: 'echo', arguments: { text: 'still here' }, ...meta };
    conversation.send(say({ id: 'good', method: 'tools/call', params }));
    await settled();
    conversation.look();
    assert.match(got.at(-1) ?? '', '"content":[{"type":"text","text":"still here"}]');
  }
  model.finished();
}

test('the fuzzer starts from every method of the methods table', () => {
  const known = new Set(MESSAGES.map(({ method }) => method));
  assert.equal(
    [...METHODS.keys(), ...Object.keys(SKILL_METHODS), ...Object.keys(TASK_METHODS)].filter(
      (method) => !known.has(method),
    ),
    [],
  );
});

test('it starts from messages that are valid: each gets its result, in each revision that has it', async () => {
  const target = await openTarget();
  for (const session of [undefined, ...LEGACY_REVISIONS]) {
    const conversation = new Conversation(target.connect());
    if (session) conversation.send(say({ id: 'open', method: 'initialize', params: opening(session) }));
    for (const { era, message, answered, kind } of MESSAGES) {
      if (era === (session ? 'modern' : 'legacy') || (session && message.method === 'initialize')) continue;
      const before = conversation.got.length;
      conversation.send(JSON.stringify(message));
      await settled();
      target.release();
      await settled();
      conversation.model.finished();
      const answers = conversation.got.slice(before).filter((text) => !text.includes('"method"'));
      assert.is(answers.length, kind === 'request' ? 1 : 0, JSON.stringify(message));
      if (answered) assert.match(answers[0] ?? '', /"result":/, JSON.stringify(message));
    }
    await conversation.close();
  }
});

test(`${INPUTS} hostile inputs: one answer to each request, none to anything else, and a good call works after them`, async () => {
  const target = await openTarget();
  let inputs = 0;
  await fc.assert(
    fc.asyncProperty(run, (each) => {
      inputs += each.inputs.length;
      return converse(target, each);
    }),
    { seed, numRuns: RUNS, includeErrorInReport: true },
  );
  assert.ok(inputs >= INPUTS, `${inputs} inputs`);
  assert.equal(target.told, []);
  assert.equal(uncaught, []);
  assert.is(({} as { polluted?: unknown }).polluted, undefined);
  await target.server.close();
});
