/** Options that are `undefined`: they compile under exactOptionalPropertyTypes, which checks this file, and count as absent. */
import * as assert from 'uvu/assert';
import { createMachine } from 'xstate';
import {
  createServer,
  type PromptOptions,
  type ResourceOptions,
  type ServerOptions,
  type ToolOptions,
} from '../../../src/index.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('undefined options');

const none = undefined;
const described = { title: none, description: none, icons: none, meta: none };
const hints = { title: none, readOnlyHint: none, destructiveHint: none, idempotentHint: none, openWorldHint: none };
const tool = {
  ...described,
  input: none,
  annotations: hints,
  timeoutMs: none,
  rerun: none,
  task: none,
} satisfies ToolOptions;
const resource = {
  ...{ ...described, name: none, mimeType: none, annotations: none, size: none, complete: none },
  ...{ ttlMs: none, cacheScope: none },
} satisfies ResourceOptions;
const prompt = {
  ...described,
  arguments: [{ name: 'a', description: none, required: none }],
  complete: none,
} satisfies PromptOptions;
const options = {
  ...{ name: 'undefined', version: '1', title: none, description: none, icons: none, websiteUrl: none },
  ...{ instructions: none, executors: none, offers: none, experimental: none, extensions: none, listTtlMs: none },
  ...{ limits: none, http: none, keys: none, askThroughModel: none, store: none, watchdog: none },
  ...{ afterLateError: none, errors: none, clock: none, log: () => {} },
} satisfies ServerOptions;
const machine = createMachine({ initial: 'on', states: { on: { on: { pay: {} } } } });

test('count as absent', async () => {
  const server = createServer(options);
  server.tool('t', { ...tool, output: none }, () => 'x');
  server.resource('doc://x', resource, () => 'x');
  server.prompt('p', prompt, () => 'x');
  server.machine('m', machine, {
    ...{
      title: none,
      description: none,
      icons: none,
      input: none,
      events: { pay: true },
      version: none,
      previous: none,
    },
    ...{ ttlMs: none, idleMs: none, single: none, annotations: none, timeoutMs: none },
  });
  const client = await connect(server);
  assert.equal(
    (await client.tools()).find(({ name }) => name === 't'),
    { name: 't', inputSchema: { type: 'object', additionalProperties: false }, annotations: {} },
  );
  assert.equal((await client.call('t', {})).content, [{ type: 'text', text: 'x' }]);
  assert.equal((await client.read('doc://x')).contents, [{ uri: 'doc://x', text: 'x' }]);
  await client.close();
  await server.close();
});
