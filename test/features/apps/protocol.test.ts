/** The protocol between a view and its host, with the official bridge as the host (MCP Apps 2026-01-26). */
import type { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';
import { SimulatedClock, settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { connect } from '../../../apps/src/view/connection.ts';
import { ViewError } from '../../../apps/src/view/host-link.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { bridged, FakeWindow, wire } from './bridged.ts';

const test = suite('the protocol of views');

test('the handshake names the page and its modes, and the view has the host and its surroundings', async () => {
  const ready: string[] = [];
  const { view, bridge, sent, window } = await bridged({
    context: { theme: 'dark', locale: 'de-CH', timeZone: 'Europe/Zurich', containerDimensions: { maxHeight: 5000 } },
    options: { name: 'board', version: '3', displayModes: ['inline'] },
    prepare: (host) => {
      host.oninitialized = () => ready.push('initialized');
    },
  });
  await settled();
  assert.equal(
    sent.map(({ method }) => method),
    ['ui/initialize', 'ui/notifications/initialized'],
  );
  assert.equal(ready, ['initialized']);
  assert.equal(bridge.getAppVersion(), { name: 'board', version: '3' });
  assert.equal(bridge.getAppCapabilities(), { availableDisplayModes: ['inline'] });
  assert.is(view.host.name, 'chat');
  assert.is(view.host.timeZone, 'Europe/Zurich');
  assert.ok(view.host.capabilities.serverTools);
  assert.equal(
    window.looks.map(({ theme, locale }) => [theme, locale]),
    [['dark', 'de-CH']],
  );
});

test('a host that does not answer the handshake is given up after 30 seconds', async () => {
  const clock = new SimulatedClock();
  const { channel, inject } = wire();
  const failed = rejection(
    connect(channel, new FakeWindow(clock), { name: '', version: '', displayModes: [] }),
    ViewError,
  );
  await clock.advance(29_999);
  await clock.advance(1);
  assert.is((await failed).reason, 'timeout');
  assert.is(clock.timers, 0);
  // Nothing listens any more.
  inject({ jsonrpc: '2.0', id: 1, result: {} });
});

test('the size goes to the host, and again when it changes', async () => {
  const sizes: unknown[] = [];
  const { view, window } = await bridged({
    prepare: (host) => {
      host.onsizechange = (size) => sizes.push(size);
    },
  });
  window.report?.(720, 310);
  window.report?.(720, 402);
  await settled();
  assert.equal(sizes, [
    { width: 720, height: 310 },
    { width: 720, height: 402 },
  ]);
  view.close();
  assert.is(window.report, undefined);
});

test('partial arguments, arguments and the result reach the view in order, and a repeated result, too', async () => {
  const { view, bridge } = await bridged();
  const seen: unknown[] = [];
  view.on('partial', (input) => seen.push([view.isInputComplete, input]));
  view.on('input', (input) => seen.push([view.isInputComplete, input]));
  const stop = view.on('result', ({ structuredContent }) => seen.push(structuredContent));
  await bridge.sendToolInputPartial({ arguments: { customer: 'A' } });
  await bridge.sendToolInputPartial({ arguments: { customer: 'Ada' } });
  await bridge.sendToolInput({ arguments: { customer: 'Ada', city: 'Bern' } });
  await bridge.sendToolResult({ content: [{ type: 'text', text: 'made' }], structuredContent: { handle: 'h1' } });
  await bridge.sendToolResult({ content: [], structuredContent: { handle: 'h1' } });
  await settled();
  assert.equal(seen, [
    [false, { customer: 'A' }],
    [false, { customer: 'Ada' }],
    [true, { customer: 'Ada', city: 'Bern' }],
    { handle: 'h1' },
    { handle: 'h1' },
  ]);
  assert.equal(view.input, { customer: 'Ada', city: 'Bern' });
  stop();
  await bridge.sendToolResult({ content: [], structuredContent: { handle: 'h2' } });
  await settled();
  assert.is(seen.length, 5);
  assert.equal(view.result?.structuredContent, { handle: 'h2' });
});

test('a cancelled call reaches the view with its reason', async () => {
  const { view, bridge } = await bridged();
  const reasons: string[] = [];
  view.on('cancelled', (reason) => reasons.push(reason));
  await bridge.sendToolCancelled({ reason: 'user action' });
  await settled();
  assert.equal(reasons, ['user action']);
  assert.is(view.cancelled, 'user action');
});

test('a change of the surroundings is merged: members that it does not name stay', async () => {
  const { view, bridge, window } = await bridged({ context: { theme: 'light', locale: 'en', displayMode: 'inline' } });
  const themes: unknown[] = [];
  view.on('host', ({ theme }) => themes.push(theme));
  bridge.setHostContext({ theme: 'dark', locale: 'en', displayMode: 'inline' });
  await settled();
  assert.equal(themes, ['dark']);
  assert.is(view.host.locale, 'en');
  assert.is(view.host.displayMode, 'inline');
  assert.is(view.host.name, 'chat');
  assert.equal(window.looks.at(-1), { theme: 'dark' });
});

test('a teardown waits for its listeners, is answered, and closes the view', async () => {
  const { view, bridge, window, sent } = await bridged({
    prepare: (host) => {
      host.oncalltool = () => new Promise(() => {});
    },
  });
  let saved = false;
  view.on('teardown', async () => {
    await settled();
    saved = true;
  });
  const pending = rejection(view.call('slow'), ViewError);
  assert.equal(await bridge.teardownResource({}), {});
  assert.ok(saved);
  await window.clock.advance(0);
  assert.ok(view.signal.aborted);
  assert.is((await pending).reason, 'closed');
  const before = sent.length;
  view.log('info', 'too late');
  assert.is((await rejection(view.call('late'), ViewError)).reason, 'closed');
  assert.is(sent.length, before);
});

test('a listener of the teardown that does not end delays its answer by one second', async () => {
  const { view, bridge, window } = await bridged();
  view.on('teardown', () => new Promise(() => {}));
  view.on('teardown', () => {
    throw new Error('broken');
  });
  let answered = false;
  const answer = bridge.teardownResource({}).then(() => {
    answered = true;
  });
  await window.clock.advance(999);
  assert.not.ok(answered);
  await window.clock.advance(1);
  await answer;
});

/** The requests for calls that a host receives. */
function calls(host: AppBridge, answer: () => object = () => ({ content: [] })) {
  const received: { name: string; arguments?: unknown; _meta?: unknown }[] = [];
  host.oncalltool = async (params) => {
    received.push(params);
    return answer() as never;
  };
  return received;
}

test('a call reaches the host with its arguments, and a failed call is a result', async () => {
  let received: ReturnType<typeof calls> = [];
  const { view } = await bridged<{ move: { input: { card: number }; output: { moved: boolean } } }>({
    prepare: (host) => {
      received = calls(host, () => ({
        content: [{ type: 'text', text: 'No such card' }],
        structuredContent: { moved: false },
        isError: true,
      }));
    },
  });
  const result = await view.call('move', { card: 7 });
  assert.ok(result.isError);
  assert.is(result.structuredContent?.moved, false);
  assert.equal(
    received.map(({ name, arguments: args, _meta }) => [name, args, _meta]),
    [['move', { card: 7 }, undefined]],
  );
});

test('calls carry the key of the last result, and no other request does', async () => {
  let received: ReturnType<typeof calls> = [];
  let next: object = { content: [] };
  const { view, bridge, sent } = await bridged({
    prepare: (host) => {
      received = calls(host, () => next);
      host.onupdatemodelcontext = async () => ({});
      host.onreadresource = async () => ({ contents: [] });
    },
  });
  await view.call('early');
  await bridge.sendToolResult({ content: [], _meta: { 'dev.troupe/view': { key: 'k1' } } } as never);
  await settled();
  next = { content: [], _meta: { 'dev.troupe/view': { key: 'k2' } } };
  await view.call('pay');
  await view.call('pay');
  assert.equal(
    received.map(({ _meta }) => _meta),
    [undefined, { 'dev.troupe/view': { key: 'k1' } }, { 'dev.troupe/view': { key: 'k2' } }],
  );
  await view.tellModel('paid');
  await view.read('troupe://order/h1');
  view.log('info', 'paid');
  for (const message of sent)
    if (message.method !== 'tools/call') assert.not.match(JSON.stringify(message), /k1|k2/, String(message.method));
});

test('a host that declares nothing is asked all the same, and its refusal has the code -32601', async () => {
  const { view } = await bridged({ capabilities: {} });
  assert.equal(view.host.capabilities, {});
  const requests = {
    call: () => view.call('order_pay'),
    read: () => view.read('troupe://order/h1'),
    tellModel: () => view.tellModel('paid'),
    say: () => view.say('hello'),
    open: () => view.open('https://example.com'),
  };
  for (const [name, request] of Object.entries(requests)) {
    const error = await rejection(request(), ViewError);
    assert.is(error.reason, 'refused', name);
    assert.is(error.code, -32601, name);
  }
});

test('a host that proxies calls without declaring it is used', async () => {
  let received: ReturnType<typeof calls> = [];
  const { view } = await bridged({
    capabilities: {},
    prepare: (host) => {
      received = calls(host);
    },
  });
  await view.call('order_pay');
  assert.is(received.length, 1);
});

test('messages, model context, links and modes reach the host; an answer with isError is a refusal', async () => {
  const heard: unknown[] = [];
  const { view } = await bridged({
    prepare: (host) => {
      host.onmessage = async (message) => {
        heard.push(message);
        return {};
      };
      host.onupdatemodelcontext = async (context) => {
        heard.push(context);
        return {};
      };
      host.onopenlink = async ({ url }) => {
        heard.push(url);
        return { isError: true };
      };
      // A host may give another mode than the one that was asked for.
      host.onrequestdisplaymode = async () => ({ mode: 'inline' });
    },
  });
  await view.say('Plan the next sprint');
  await view.tellModel('Card 7 is done', { card: 7 });
  assert.is((await rejection(view.open('https://example.com/pay'), ViewError)).reason, 'refused');
  assert.is(await view.mode('fullscreen'), 'inline');
  assert.equal(heard, [
    { role: 'user', content: [{ type: 'text', text: 'Plan the next sprint' }] },
    { content: [{ type: 'text', text: 'Card 7 is done' }], structuredContent: { card: 7 } },
    'https://example.com/pay',
  ]);
});

test('an unknown request of the host gets -32601, a ping its answer, and an unknown notification nothing', async () => {
  const { inject, sent } = await bridged();
  const before = sent.length;
  inject({ jsonrpc: '2.0', id: 'a', method: 'tools/list' });
  inject({ jsonrpc: '2.0', id: 0, method: 'ping' });
  inject({ jsonrpc: '2.0', method: 'ui/notifications/other', params: {} });
  for (const broken of [null, 7, 'text', [], {}, { jsonrpc: '2.0' }, { jsonrpc: '2.0', id: 99, result: {} }])
    inject(broken);
  await settled();
  assert.equal(sent.slice(before), [
    { jsonrpc: '2.0', id: 'a', error: { code: -32601, message: 'Method not found' } },
    { jsonrpc: '2.0', id: 0, result: {} },
  ]);
});

test('a call that is given up or late fails, and its answer is ignored', async () => {
  const answers: (() => void)[] = [];
  const { view, window } = await bridged({
    prepare: (host) => {
      host.oncalltool = () => new Promise((resolve) => answers.push(() => resolve({ content: [] })));
    },
  });
  const controller = new AbortController();
  const given = rejection(view.call('slow', {}, { signal: controller.signal }), ViewError);
  const late = rejection(view.call('slow', {}, { timeoutMs: 5_000 }), ViewError);
  await settled();
  controller.abort();
  assert.is((await given).reason, 'closed');
  await window.clock.advance(5_000);
  assert.is((await late).reason, 'timeout');
  for (const answer of answers) answer();
  await settled();
  assert.is(window.clock.timers, 0);
});
