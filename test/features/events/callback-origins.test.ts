/** The origins of callbacks: those that a program lists, and those of loopback addresses under `troupe dev`. */
import * as assert from 'uvu/assert';
import { ReloadHost } from '../../../src/cli/reload/reload-host.ts';
import { Endpoints } from '../../../src/cli/serving/endpoints.ts';
import { LOCAL } from '../../../src/core/protocol/principals.ts';
import { CallbackOrigins, forDevelopment, isCallbackOrigin } from '../../../src/features/events/callback-origins.ts';
import type { EventServerOptions } from '../../../src/features/events/events-options.ts';
import { createServer, memory, type Server } from '../../../src/index.ts';
import { TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { errorResponse } from '../../harness/results.ts';
import { receiver, subscription } from './delivery/support.ts';
import { PAYLOAD } from './support.ts';

const test = suite('origins of callbacks');

test('S-134: an origin has no path, and only a loopback address stands for every port', () => {
  const right = [
    'http://127.0.0.1:8080',
    'https://hooks.internal',
    'http://127.0.0.1:*',
    'http://[::1]:*',
    'https://localhost:*',
  ];
  const wrong = [
    'http://127.0.0.1:8080/',
    '127.0.0.1',
    '*',
    'http://*',
    'https://example.com:*',
    'http://10.0.0.1:*',
    'http://127.0.0.1.example.com:*',
    '',
  ];
  assert.equal([right.filter((each) => !isCallbackOrigin(each)), wrong.filter(isCallbackOrigin)], [[], []]);
  const origins = new CallbackOrigins(['http://127.0.0.1:*', 'http://[::1]:*', 'https://hooks.internal']);
  const allowed = ['http://127.0.0.1', 'http://127.0.0.1:1', 'http://[::1]:65535', 'https://hooks.internal'];
  const others = [
    'https://127.0.0.1:1',
    'http://127.0.0.1.example.com:1',
    'https://hooks.internal:8443',
    'http://127.0.0.2:1',
  ];
  assert.equal([allowed.filter((each) => !origins.has(each)), others.filter((each) => origins.has(each))], [[], []]);
});

test('S-134: under troupe dev the user of this machine subscribes a loopback callback, and without it only if the program says so', async () => {
  const hook = await receiver();
  const define = (server: Server): Server => {
    server.event('note', { description: 'd', payload: PAYLOAD });
    return server;
  };
  const codeOf = async (events: EventServerOptions | undefined, isDev: boolean): Promise<number | undefined> => {
    const options = { name: 'mine', version: '1', log: () => {}, events };
    const { transport, connect } = memory();
    const program = define(createServer(options));
    let server = program;
    if (isDev) {
      const endpoints = new Endpoints('dev', { values: {}, lists: {}, positionals: [], rest: [] });
      const host = new ReloadHost(options, endpoints, async (own) => {
        server = own;
      });
      host.adopt(program);
      await host.open([transport]);
    } else await server.listen(transport);
    const subscribed = new TestClient(connect({ principal: LOCAL })).modern('events/subscribe', subscription(hook.url));
    const code = await errorResponse(subscribed).then(
      (error) => error.code,
      () => undefined,
    );
    await server.close();
    return code;
  };
  assert.is(await codeOf(undefined, true), undefined);
  assert.is(await codeOf({ callbacks: false }, true), -32014);
  assert.is(await codeOf({ callbacks: { local: false } }, true), -32012);
  assert.is(await codeOf(undefined, false), -32012);
  assert.is(await codeOf({ callbacks: { local: true } }, false), -32602);
  assert.is(await codeOf(forDevelopment(), false), undefined);
  await hook.close();
});
