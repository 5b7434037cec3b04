/** The first file of the built command: an old Node parses it, and prints a reason with its path before it loads anything else. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { suite } from '../harness/door.ts';
import { noOldNode, oldNode } from '../harness/newer-node.ts';
import { isBuilt } from './cli.ts';

const test = suite('the version of Node', isBuilt ? undefined : 'dist is missing: npm run build');
const BUILT = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));
const TEXT = isBuilt ? readFileSync(BUILT, 'utf8') : '';

/** Runs the file under a version of Node. */
function under(version: string): { readonly loaded: readonly string[]; readonly err: string; readonly code: unknown } {
  const loaded: string[] = [];
  const lines: string[] = [];
  const process = {
    versions: { node: version },
    version: `v${version}`,
    execPath: '/usr/bin/node',
    stderr: { write: (text: string) => lines.push(text) },
  };
  runInNewContext(TEXT.replace(/^#!.*/, ''), { process, require: (name: string) => loaded.push(name) });
  return { loaded, err: lines.join(''), code: Reflect.get(process, 'exitCode') };
}

for (const version of ['4.0.0', '12.21.0', '18.20.4', '20.18.3'])
  test(`Node ${version} prints its path and what is needed, and loads nothing`, () => {
    const { loaded, err, code } = under(version);
    assert.equal([loaded, code], [[], 1]);
    assert.match(err, `expected Node.js 20.19 or later, got v${version}, which is /usr/bin/node.`);
    assert.match(err, 'Install a newer Node.js');
  });

for (const version of ['20.19.0', '21.0.0', '22.5.0', '24.1.0'])
  test(`Node ${version} loads the command`, () => {
    assert.equal(under(version), { loaded: ['./command.js'], err: '', code: undefined });
  });

test('the file has no syntax that is newer than ES5', () => {
  const { transformSync } = z
    .object({ transformSync: z.custom<(text: string, options: { target: string }) => { readonly code: string }>() })
    .parse(createRequire(import.meta.resolve('tsx'))('esbuild'));
  const isOld = (text: string): boolean =>
    transformSync(text, { target: 'es5' }).code === transformSync(text, { target: 'esnext' }).code;
  assert.ok(isOld(TEXT));
  assert.not.ok(isOld('f(() => a ?? b)'));
});

test('the version is that of package.json', () => {
  const { engines } = z
    .object({ engines: z.object({ node: z.string() }) })
    .parse(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')));
  assert.match(TEXT, `expected Node.js ${engines.node.replace('>=', '')} or later`);
});

if (noOldNode) test.skip('Node 12 prints the reason', noOldNode);
else
  test.full('Node 12 prints the reason', async () => {
    const node = await oldNode();
    const { status, stderr } = spawnSync(node, [BUILT, '--version'], { encoding: 'utf8' });
    assert.is(status, 1);
    assert.match(stderr, `got v12.21.0, which is ${node}`);
  });
