/** The compiled tests. */
import * as index from 'troupe';
import * as client from 'troupe/client';
import * as inspector from 'troupe/inspector';
import * as oauth from 'troupe/oauth';
import * as otel from 'troupe/otel';
import * as testing from 'troupe/testing';
import * as webhooks from 'troupe/webhooks';
import * as assert from 'uvu/assert';
import { ENTRIES } from '../../build/entries.ts';
import { moduleUrl } from './compiled.ts';
import { suite } from './door.ts';

const test = suite('compiled tests');

const IMPORTED: Readonly<Record<keyof typeof ENTRIES, object>> = {
  ...{ index, client, testing, inspector, oauth, otel, webhooks },
};

for (const [name, source] of Object.entries(ENTRIES))
  test(`a test that imports the entry point ${name} of the package gets the classes of the sources`, async () => {
    const own: object = await import(moduleUrl(`src/${source}.ts`));
    assert.is(Reflect.get(IMPORTED, name), own);
  });
