/** The start of the README, in an empty folder, with the packed Troupe and each line of Node.js that is supported. */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as assert from 'uvu/assert';
import { suite, timeLimit } from '../../harness/door.ts';
import { nodeOf, noOtherNode } from '../../harness/newer-node.ts';
import { FirstHour } from './first-hour.ts';

const test = suite('the README on each Node');
const README = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
/** The lines of Node.js of docs/support.md. */
const LINES = ['20', '22', '24'];
// npm installs four times: a version of Node.js, and the packages of a project.
timeLimit(400_000);

const [, install = '', program = '', call = '', result = ''] =
  /^## Start[\s\S]*?^```sh\n([\s\S]*?)^```[\s\S]*?^```ts\n([\s\S]*?)^```\s+^```sh\n(.*)\n```\s+^```text\n(.*)\n```/m.exec(
    README,
  ) ?? [];

test('the README has an installation, a program, a call and its result', () => {
  assert.match(install, 'npm install troupe zod');
  assert.match(program, 'server.listen(stdio())');
  assert.match(call, 'npx troupe call server.ts');
  assert.ok(result);
});

for (const line of LINES) {
  const title = `an installation of the package calls, runs and stores with Node ${line}`;
  if (noOtherNode && !process.version.startsWith(`v${line}.`)) test.skip(title, noOtherNode);
  else
    test.full(title, async () => {
      const node = await nodeOf(line);
      const hour = await FirstHour.packed();
      try {
        const { shell } = hour;
        await shell.run(`export PATH="${dirname(node)}:$PATH"`);
        assert.match(await shell.run('node --version'), `v${line}.`);
        const installed = await shell.run(install);
        assert.not.match(installed, /deprecated|EBADENGINE|vulnerab(?!ilities\b)/);
        writeFileSync(join(hour.folder, 'greeter/server.ts'), program);
        assert.is((await shell.run(call)).trim(), result);
        // `troupe run` supervises it, with a database.
        const run = 'npx troupe call greet name=Ada -- node_modules/.bin/troupe run server.ts --data data';
        assert.match(await shell.run(run), result);
        assert.match(await shell.run('ls data'), 'troupe.db');
        // A program of the author without a command, by the exports of the package.
        writeFileSync(join(hour.folder, 'greeter/use.js'), USE);
        assert.is((await shell.run('node use.js')).trim(), 'greet Hello, Ada!');
        assert.is((await shell.run(REQUIRED)).trim(), 'function');
      } finally {
        await hour.close();
      }
    });
}

const USE = `
import { createServer } from 'troupe';
import { connect } from 'troupe/client';
import 'troupe/testing';
import 'troupe/inspector';
import 'troupe/webhooks';
const server = createServer({ name: 'greeter', version: '1.0.0' }).tool('greet', () => 'Hello, Ada!');
const client = await connect(server);
const [tool] = await client.tools();
const { content } = await client.call('greet');
console.log(tool.name, content[0].text);
await client.close();
await server.close();
`;
const REQUIRED = `node --no-warnings -e "console.log(typeof require('troupe').createServer)"`;
