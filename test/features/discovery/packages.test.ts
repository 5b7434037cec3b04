/** Which packages are imported before the module that names them: those, and only those, that come first anyway. */
import * as assert from 'uvu/assert';
import { leadingPackages } from '../../../src/features/discovery/packages.ts';
import { suite } from '../../harness/door.ts';

const test = suite('leading packages');

test('every form of import counts, also between comments', () => {
  assert.equal(
    leadingPackages(`#!/usr/bin/env node
/** A module: import x from 'no'; */
import 'one';
import two from "two";
import { a, b as c, type D } from 'three/sub';
// import no from 'no';
import * as four from '@four/pkg';
import five, { e } from 'five'
import { readFile } from 'node:fs/promises';
import path from 'path';
import json from 'six/data.json' with { type: 'json' };
import {
  long,
  list,
} from 'seven';
const x = 1;
import late from 'late';`),
    ['one', 'two', 'three/sub', '@four/pkg', 'five', 'six/data.json', 'seven'],
  );
});

test('types are no packages to load', () => {
  assert.equal(leadingPackages(`import type { A } from 'types';\nimport type from 'named-type';`), ['named-type']);
});

test('it ends at the first import by path: what that does comes first', () => {
  for (const path of ['./setup.ts', '../setup.ts', '/setup.ts', '#setup', 'file:///setup.ts'])
    assert.equal(leadingPackages(`import 'one';\nimport '${path}';\nimport 'two';`), ['one']);
});

test('code that only looks like imports is none', () => {
  assert.equal(leadingPackages(`import('one');`), []);
  assert.equal(leadingPackages(`import.meta.url;\nimport 'one';`), []);
  assert.equal(leadingPackages('const text = `\nimport "one";\n`;'), []);
  assert.equal(leadingPackages(''), []);
});
