/** The members of XState that Troupe needs and that XState does not document: which versions have them, and what an operator reads otherwise. */
import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { createActor, createMachine } from 'xstate';
import {
  interceptEffects,
  missingMembers,
  TESTED_VERSIONS,
  untestedVersion,
} from '../../../src/core/kernel/xstate-internals.ts';
import { warnOfUntestedXState } from '../../../src/core/registry/xstate-copy.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the private members of XState');

const { version }: { readonly version: string } = JSON.parse(
  readFileSync(new URL('../../../node_modules/xstate/package.json', import.meta.url), 'utf8'),
);

test('the installed version is a tested one', () => {
  const minor = version.split('.').slice(0, 2).join('.');
  assert.ok(
    TESTED_VERSIONS.includes(minor),
    `xstate ${version} is installed, and TESTED_VERSIONS in src/core/kernel/xstate-internals.ts lists ${TESTED_VERSIONS.join(', ')}: run npm test and npm run test:faults with this version, then add ${minor}`,
  );
});

test('the installed version has every member', () => {
  assert.equal(missingMembers(), [], `xstate ${version} has changed: adapt src/core/kernel/xstate-internals.ts`);
});

test('nothing is reported of a tested version that has every member', () => {
  assert.is(untestedVersion('5.33.99', []), undefined);
});

test('an untested version is reported in words, with what it lacks', () => {
  assert.is(
    untestedVersion('5.34.0', []),
    'xstate 5.34.0 is installed, and Troupe was tested with 5.33. It has all members that Troupe needs. If a statechart behaves wrongly, install xstate@~5.33',
  );
  assert.match(untestedVersion('5.33.1', ['_parent of an actor']) ?? '', 'It does not have: _parent of an actor. If');
});

test('each server logs an untested version once', () => {
  const logged: string[] = [];
  const log = (_level: string, message: string): void => void logged.push(message);
  warnOfUntestedXState(log, '5.99.0');
  warnOfUntestedXState(log, '5.99.0');
  assert.is(logged.length, 1);
  assert.match(logged[0] ?? '', /^xstate 5\.99\.0 is installed/);
});

test('an actor without an effect scope is rejected in words', () => {
  const actor = createActor(createMachine({}));
  const bare = new Proxy(actor, { has: (target, key) => key !== '_actorScope' && key in target });
  assert.throws(
    () => interceptEffects(bare, { execute() {}, defer() {} }),
    /expected an actor of xstate 5\.33, got one without an effect scope/,
  );
});
