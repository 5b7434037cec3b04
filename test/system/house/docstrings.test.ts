/** The docstrings of the calls that authors write: each overload has one, with an example. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';

const test = suite('docstrings');
const types = new URL('../../../dist/types/src/', import.meta.url);

/** The calls of each declaration file, by the file. */
const CALLS = {
  'features/server/server.d.ts': [
    'createServer',
    'tool',
    'machine',
    'resource',
    'prompt',
    'discover',
    'listen',
    'fetch',
    'node',
    'use',
    'authorize',
    'inspect',
    'close',
    'release',
  ],
  'core/registry/define.d.ts': ['defineTool', 'defineResource', 'definePrompt'],
  'features/machines/define-machine.d.ts': ['defineMachine'],
  'client/open-client.d.ts': ['connect'],
  'testing/connect.d.ts': ['connect'],
};

if (existsSync(types))
  test('each overload of a call has a docstring with an example', () => {
    const missing: string[] = [];
    for (const [file, calls] of Object.entries(CALLS)) {
      const text = readFileSync(fileURLToPath(new URL(file, types)), 'utf8');
      for (const call of calls) {
        const found = [
          ...text.matchAll(
            new RegExp(`(\\/\\*\\*(?:(?!\\*\\/)[^])*\\*\\/)?\\n\\s*(?:export declare function )?${call}[<(].*`, 'g'),
          ),
        ];
        if (found.length === 0) missing.push(`${file}: no ${call}`);
        for (const [declaration, docstring] of found) {
          // The overloads that only carry a message for the compiler are no calls to show.
          if (docstring?.includes('compiler')) continue;
          if (!docstring?.includes('@example')) missing.push(`${file}: ${declaration.trim().slice(0, 120)}`);
        }
      }
    }
    assert.equal(missing, []);
  });
else test.skip('all of it', 'dist is missing: npm run build');
