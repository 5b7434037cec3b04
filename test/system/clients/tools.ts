/** What a client must be able to do with tools: list them, call them, get what they return, and learn what went wrong. */
import { Buffer } from 'node:buffer';
import * as assert from 'uvu/assert';
import { PNG } from '../../../examples/everything/media.ts';
import { contentOf, type Stage, textOf } from './stage.ts';

export function toolTests({ test, modern, since, client, call, refusal }: Stage): void {
  test('lists the tools, with what the revision knows of them', async () => {
    const tools = await client().listTools();
    assert.ok(tools.length >= 25, `${tools.length} tools`);
    const [echo] = tools;
    const { description } = Object(echo);
    assert.is(description, 'Returns the given text.');
    assert.is(Object(echo).title, since('2025-06-18') ? 'Echo' : undefined);
    assert.is(Object(echo).annotations === undefined, !since('2025-03-26'));
    assert.is(Object(echo).icons === undefined, !since('2025-11-25'));
    const add = Object(tools.find(({ name }) => name === 'add'));
    assert.is(add.outputSchema === undefined, !since('2025-06-18'));
    const primes = Object(tools.find(({ name }) => name === 'list_primes'));
    assert.is(primes.outputSchema === undefined, !modern);
    const schema = Object(tools.find(({ name }) => name === 'json_schema_2020_12_tool')).inputSchema;
    assert.is(schema.$schema, 'https://json-schema.org/draft/2020-12/schema');
    assert.is(schema.$defs.address.$anchor, 'addressDef');
    assert.equal(schema.else, { required: ['email'] });
    assert.not(tools.some(({ name }) => name === 'dynamic_tool'));
  });

  test('gets each kind of content', async () => {
    assert.equal(contentOf(await call('echo', { text: 'héllo \u{1F44B}\u2028' })), said('héllo \u{1F44B}\u2028'));
    assert.equal(contentOf(await call('test_simple_text')), said('This is a simple text response for testing.'));
    assert.equal(contentOf(await call('test_image_content')), [{ type: 'image', data: PNG, mimeType: 'image/png' }]);
    assert.equal(contentOf(await call('test_embedded_resource')), [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ]);
    const [sound] = contentOf(await call('test_audio_content'));
    // Before 2025-03-26 a sound travels as an embedded resource.
    const wav = since('2025-03-26') ? Object(sound).data : Object(sound).resource.blob;
    assert.is(Object(sound).type, since('2025-03-26') ? 'audio' : 'resource');
    assert.is(Buffer.from(wav, 'base64').toString('latin1', 0, 4), 'RIFF');
    const [pointer] = contentOf(await call('resource_link'));
    assert.is(Object(pointer).type, since('2025-06-18') ? 'resource_link' : 'text');
    assert.match(JSON.stringify(pointer), 'test://static-text');
    assert.equal(
      contentOf(await call('test_multiple_content_types')).map((block) => Object(block).type),
      ['text', 'image', 'resource'],
    );
    assert.equal(Object(contentOf(await call('annotated_content'))[0]).annotations, {
      audience: ['user'],
      priority: 1,
    });
  });

  test('gets structured output, as data from 2025-06-18 on and always as text', async () => {
    await client().listTools();
    const sum = await call('add', { a: 2, b: 40 });
    assert.equal(sum.structuredContent, since('2025-06-18') ? { sum: 42 } : undefined);
    assert.equal(JSON.parse(textOf(sum)), { sum: 42 });
    const primes = await call('list_primes');
    assert.is(Array.isArray(primes.structuredContent), modern);
    assert.is(JSON.parse(textOf(primes))[14], 47);
  });

  test('gets the result envelope, and what was left out of a large one', async () => {
    const few = JSON.parse(textOf(await call('find_rows', { table: 'numbers' })));
    assert.equal(few.data[2], { n: 2, square: 4 });
    assert.is(few.meta.rowCount, 3);
    assert.is(few.meta.tier, 'memory');
    assert.type(few.meta.durationMs, 'number');
    const many = JSON.parse(textOf(await call('find_rows', { table: 'numbers', count: 50_000 })));
    assert.is(many.meta.rowCount, 50_000);
    assert.is(many.meta.truncated, true);
    assert.ok(many.data.length < 50_000);
    const none = await call('find_rows', { table: 'letters' });
    assert.is(none.isError, true);
    assert.match(textOf(none), 'no table \\"letters\\"');
  });

  test('lets the model read what is wrong with its arguments', async () => {
    const wrong = await call('add', { a: 'two', c: 1 });
    assert.is(wrong.isError, true);
    assert.match(textOf(wrong), 'a: expected number, got string "two"');
    assert.match(textOf(wrong), 'b: expected');
    const branch = await call('json_schema_2020_12_tool', { contactMethod: 'phone', email: 'a@b.c' });
    assert.is(branch.isError, true);
    const fits = await call('json_schema_2020_12_tool', {
      contactMethod: 'phone',
      phone: '1',
      address: { city: 'Linz' },
    });
    assert.is(fits.isError, undefined);
  });

  test('tells failures of a tool from errors of the protocol', async () => {
    const thrown = await call('test_error_handling');
    assert.is(thrown.isError, true);
    assert.is(textOf(thrown), 'This tool intentionally returns an error for testing');
    const invalid = await call('invalid_output');
    assert.is(invalid.isError, true);
    assert.match(textOf(invalid), 'sum: expected number, got string "not a number"');
    const refused = await refusal(call('protocol_error'));
    assert.is(refused.code, -32602);
    assert.match(String(refused.message), 'This tool answers no one');
    assert.equal(refused.data, { hint: 'call another' });
    const unknown = await refusal(call('no_such_tool'));
    assert.is(unknown.code, -32602);
    assert.match(String(unknown.message), 'no_such_tool');
  });
}

function said(text: string): readonly object[] {
  return [{ type: 'text', text }];
}
