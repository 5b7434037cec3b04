/** What goes on besides answers: progress, logs, changes, cancellation, many calls at once, and tools that misbehave. */
import * as assert from 'uvu/assert';
import { failure, type Loose } from './official.ts';
import { contentsOf, type Stage, textOf } from './stage.ts';

export function talkingTests({ test, modern, cancelsByClosing, since, client, call, refusal }: Stage): void {
  test('receives the progress of a call before its result', async () => {
    const { wire } = client();
    const steps: object[] = [];
    const before = wire.received.length;
    const result = await client().callTool('test_tool_with_progress', {}, { onProgress: (step) => steps.push(step) });
    assert.is(textOf(result), 'Reported progress.');
    const came = wire.received.slice(before);
    assert.equal(
      came.map(({ method }) => method),
      ['notifications/progress', 'notifications/progress', 'notifications/progress', undefined],
    );
    const told = came.slice(0, 3).map(({ params }) => Object(params));
    assert.equal(
      told.map(({ progress, total }) => [progress, total]),
      [
        [0, 100],
        [50, 100],
        [100, 100],
      ],
    );
    const messages = ['begins', 'half of it', 'all of it'];
    assert.equal(
      told.map(({ message }) => message),
      since('2025-03-26') ? messages : messages.map(() => undefined),
    );
    // Where the last progress and the result arrive in one chunk, both clients let go of their handler before they call it
    // (modelcontextprotocol/typescript-sdk issue 2580).
    assert.equal(
      steps.map((step) => Reflect.get(step, 'progress')),
      [0, 50, 100].slice(0, steps.length),
    );
  });

  test('gets log messages at the level that it asked for', async () => {
    const { wire, heard } = client();
    const logs = (): Loose[] => wire.notifications('notifications/message').map(({ params }) => Object(params));
    const ask = async (level: 'debug' | 'warning' | 'emergency', tool: string): Promise<unknown[]> => {
      const before = logs().length;
      if (modern) await client().callTool(tool, {}, { meta: { 'io.modelcontextprotocol/logLevel': level } });
      else {
        await client().setLevel(level);
        await call(tool);
      }
      return logs()
        .slice(before)
        .map((log) => log.level);
    };
    assert.equal(await ask('debug', 'test_tool_with_logging'), ['info', 'info', 'info']);
    assert.equal(logs()[0]?.data, 'Tool execution started');
    assert.equal(await ask('warning', 'log_each_level'), ['warning', 'error', 'critical', 'alert', 'emergency']);
    assert.equal(logs().at(-1), { level: 'emergency', logger: 'everything', data: { severity: 7 } });
    assert.equal(await ask('emergency', 'test_logging_tool'), []);
    const before = logs().length;
    await call('test_logging_tool');
    assert.is(logs().length, before, 'and none where it asked for none');
    assert.is(heard.filter(({ method }) => method === 'notifications/message').length, 8);
  });

  test('sees lists change', async () => {
    const { wire, heard } = client();
    for (const [kind, list] of [
      ['tool', () => client().listTools()],
      ['resource', () => client().listResources()],
      ['prompt', () => client().listPrompts()],
    ] as const) {
      const method = `notifications/${kind}s/list_changed`;
      const shown = async (): Promise<boolean> => (await list()).some((item) => /^dynamic/.test(String(item.name)));
      assert.is(await shown(), false);
      await call(`test_trigger_${kind}_change`);
      if (!modern) await wire.until(() => wire.notifications(method).length === 1);
      assert.is(await shown(), true);
      await call(`test_trigger_${kind}_change`);
      if (!modern) await wire.until(() => wire.notifications(method).length === 2);
      assert.is(await shown(), false);
      assert.is(heard.filter((message) => message.method === method).length, modern ? 0 : 2);
    }
    assert.is((await refusal(call('dynamic_tool'))).code, -32602);
  });

  if (!modern)
    test('is notified of changes to what it subscribed to, until it unsubscribes', async () => {
      const { wire } = client();
      const uri = 'test://watched-resource';
      const updates = () => wire.notifications('notifications/resources/updated');
      await call('change_watched_resource');
      await client().subscribe(uri);
      await call('change_watched_resource');
      await wire.until(() => updates().length > 0);
      assert.equal(updates()[0]?.params, { uri });
      assert.match(JSON.stringify(await client().readResource(uri)), 'changed 2 times');
      await client().unsubscribe(uri);
      const lists = wire.notifications('notifications/tools/list_changed').length;
      await call('change_watched_resource');
      // Both are gathered for the same moment: when the one has come, the other would have.
      await call('test_trigger_tool_change');
      await wire.until(() => wire.notifications('notifications/tools/list_changed').length > lists);
      await call('test_trigger_tool_change');
      assert.is(updates().length, 1);
      assert.is((await refusal(client().subscribe('test://nowhere'))).code, -32002);
    });

  test('cancels a call while it reports: the handler is notified, and nothing more is sent for it', async () => {
    const { wire } = client();
    const waits = async () => JSON.parse(Object(contentsOf(await client().readResource('test://waits'))[0]).text);
    const controller = new AbortController();
    const { signal } = controller;
    let cancelled: Promise<unknown> = Promise.resolve();
    const step = await new Promise<object>((onProgress) => {
      cancelled = failure(client().callTool('wait', { ms: 60_000 }, { signal, onProgress }));
    });
    assert.is(Reflect.get(step, 'total'), 60_000);
    assert.equal(await waits(), { waiting: 1, cancelled: 0 });
    controller.abort(new Error('changed my mind'));
    await cancelled;
    while ((await waits()).waiting !== 0);
    assert.equal(await waits(), { waiting: 0, cancelled: 1 });
    const id = wire.sent.find(({ params }) => Object(params).name === 'wait')?.id;
    const cancels = wire.sent.filter(({ method }) => method === 'notifications/cancelled');
    assert.equal(
      cancels.map(({ params }) => Object(params).requestId),
      cancelsByClosing ? [] : [id],
    );
    assert.is(
      wire.received.some((message) => message.id === id),
      false,
    );
  });

  if (modern)
    test('receives on each subscription only what it asked for there, until it ends the subscription', async () => {
      const { wire, heard } = client();
      const uri = 'test://watched-resource';
      const before = heard.length;
      const told = (): unknown[] =>
        wire.received.flatMap(({ method }) => (/updated|list_changed/.test(String(method)) ? [method] : []));
      const one = await client().listen({ toolsListChanged: true, resourceSubscriptions: [uri, 'test://nowhere'] });
      assert.equal(one.honoredFilter, { toolsListChanged: true, resourceSubscriptions: [uri] });
      const two = await client().listen({ promptsListChanged: true });
      assert.equal(two.honoredFilter, { promptsListChanged: true });
      await call('change_watched_resource');
      await wire.until(() => told().length === 1);
      await call('test_trigger_tool_change');
      await wire.until(() => told().length === 2);
      await one.close();
      assert.is(await one.closed, 'local');
      await call('test_trigger_tool_change');
      await call('change_watched_resource');
      await call('test_trigger_prompt_change');
      await wire.until(() => told().length === 3);
      await call('test_trigger_prompt_change');
      await wire.until(() => told().length === 4);
      await two.close();
      assert.equal(
        heard.slice(before).map(({ method }) => method),
        told(),
      );
      assert.equal(told(), [
        'notifications/resources/updated',
        'notifications/tools/list_changed',
        'notifications/prompts/list_changed',
        'notifications/prompts/list_changed',
      ]);
    });

  test('gets the answers of many calls at once, each its own', async () => {
    const texts = Array.from({ length: 100 }, (_, i) => `call ${i}`);
    const results = await Promise.all(texts.map((each) => call('echo', { text: each })));
    assert.equal(results.map(textOf), texts);
  });

  test('is not disturbed by a tool that prints, nor by one that throws when it has answered', async () => {
    const { wire } = client();
    assert.is(textOf(await call('print')), 'Printed.');
    assert.is(textOf(await call('throw_later')), 'Answered before the throw.');
    await wire.until(() => /throw_later.*thrown too late/s.test(wire.printed));
    assert.match(wire.printed, 'printed by a tool');
    assert.is(textOf(await call('echo', { text: 'still here' })), 'still here');
  });
}
