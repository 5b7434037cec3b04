/** The rules of the step log, which are the same with and without a store. */

import * as assert from 'uvu/assert';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import { fromText, toText } from '../../../src/core/store/serialize.ts';
import { type Store, StoreError, type Write } from '../../../src/core/store/store.ts';
import {
  copyOf,
  type StepFormat,
  StepLog,
  type StepStorage,
  StepStream,
} from '../../../src/features/asking/step-log.ts';
import { suite } from '../../harness/door.ts';
import { TestStore } from '../../harness/test-store.ts';

const test = suite('step log');

const FORMAT: StepFormat = {
  write: (name, result) => ({ kind: name, data: toText(result) }),
  read: ({ kind, data }) => ({ name: kind, result: fromText(data, kind) as never }),
};

interface Failing {
  readonly store: Store;
  /** The next commit fails: before it is durable, or after. */
  fails: 'before' | 'after' | undefined;
}

function failing(): Failing {
  const stage: Failing = {
    fails: undefined,
    store: new (class extends TestStore {
      override async write(writes: readonly Write[]): Promise<void> {
        const { fails } = stage;
        stage.fails = undefined;
        if (fails === 'before') throw new StoreError('full', 'the disk is full');
        await super.write(writes);
        if (fails === 'after') throw new StoreError('failed', 'the disk did not respond');
      }
    })(),
  };
  return stage;
}

function streamOf(store: Store, maxSteps = 10): StepStream {
  const created = {
    kind: 'question',
    name: '',
    principal: '',
    status: 'open',
    created: 0,
    expires: undefined,
  } as const;
  return new StepStream({
    store,
    actor: 'question/one',
    stream: 'steps',
    format: FORMAT,
    maxSteps,
    maxLength: 1_000,
    limit: 'request',
    label: (name) => `step "${name}"`,
    fresh: false,
    more: () => [{ type: 'actor', actor: { ...created, id: 'question/one' } }],
  });
}

function logOf(storage: StepStorage | undefined): { readonly step: StepLog['step']; readonly held: () => number } {
  let held = 0;
  const memory = {
    hold: (bytes: number) => {
      held += bytes;
      return undefined;
    },
    free: (bytes: number) => {
      held -= bytes;
    },
  };
  const label = (name: string): string => `step "${name}"`;
  const { step } = new StepLog({
    recorded: undefined,
    storage,
    memory,
    maxLength: 1_000,
    remembersFailures: false,
    label,
    copy: copyOf,
  });
  return { step, held: () => held };
}

const messageOf = (promise: Promise<unknown>): Promise<string> => promise.then(String, String);

for (const [where, storage] of [
  ['with a store', () => streamOf(memoryStore())],
  ['without a store', () => undefined],
] as const) {
  test(`${where}, a step whose function fails may run again, and a step with a result does not`, async () => {
    const { step } = logOf(storage());
    let runs = 0;
    const pay = (): Promise<number> =>
      step('pay', () => {
        runs += 1;
        if (runs === 1) throw new Error('the service is down');
        return runs;
      });
    assert.match(await messageOf(pay()), /the service is down/);
    assert.equal([await pay(), await pay()], [2, 2]);
    assert.is(runs, 2);
  });
}

test('a step that has run and whose result could not be recorded does not run again in this run', async () => {
  const stage = failing();
  const { step, held } = logOf(streamOf(stage.store));
  stage.fails = 'before';
  let runs = 0;
  const pay = (): Promise<number> =>
    step('pay', () => {
      runs += 1;
      return runs;
    });
  assert.match(await messageOf(pay()), /has run, but its result could not be persisted: the disk is full/);
  assert.match(await messageOf(pay()), /has run/);
  assert.is(runs, 1);
  assert.is(held(), 0, 'the memory of the result is free again');
  // The number of the failed step is used by the next.
  assert.is(await step('mail', () => 'sent'), 'sent');
  assert.equal([...(await streamOf(stage.store).read()).keys()], ['mail']);
});

test('after a commit whose outcome is unknown, the next step reads the store first', async () => {
  const stage = failing();
  const { step } = logOf(streamOf(stage.store));
  stage.fails = 'after';
  assert.match(await messageOf(step('pay', () => 1)), /could not be persisted: the disk did not respond/);
  assert.is(await step('mail', () => 'sent'), 'sent');
  assert.equal([...(await streamOf(stage.store).read()).keys()], ['pay', 'mail']);
});

test('steps that still run count against the limit, and failed ones do not', async () => {
  const { step } = logOf(streamOf(memoryStore(), 2));
  assert.match(await messageOf(step('fails', () => Promise.reject(new Error('no')))), /no/);
  let end = (): void => {};
  const running = new Promise<void>((resolve) => {
    end = resolve;
  });
  const first = step('first', () => running);
  const second = step('second', () => 2);
  assert.match(await messageOf(step('third', () => 3)), /step "third": expected at most 2 steps in one request/);
  end();
  await first;
  assert.is(await second, 2);
});
