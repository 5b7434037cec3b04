/** What a client must be able to do with resources and prompts: list, read, fill in, complete. */
import * as assert from 'uvu/assert';
import { PNG } from '../../../examples/everything/media.ts';
import type { Loose, OfficialClient } from './official.ts';
import { contentsOf, type Stage } from './stage.ts';

export function readingTests({ test, modern, since, client, refusal }: Stage): void {
  test('reads resources of each kind', async () => {
    const resources = await client().listResources();
    const [first] = resources;
    assert.is(Object(first).uri, 'test://static-text');
    assert.is(Object(first).title, since('2025-06-18') ? 'Static text' : undefined);
    assert.is(Object(first).annotations.priority, 0.8);
    assert.equal(contentsOf(await client().readResource('test://static-text')), [
      {
        uri: 'test://static-text',
        mimeType: 'text/plain',
        text: 'This is the content of the static text resource.',
      },
    ]);
    assert.equal(contentsOf(await client().readResource('test://static-binary')), [
      { uri: 'test://static-binary', mimeType: 'image/png', blob: PNG },
    ]);
    assert.is(contentsOf(await client().readResource('test://folder')).length, 2);
  });

  test('reads resources by template', async () => {
    const templates = await client().listTemplates();
    assert.equal(
      templates.map(({ uriTemplate }) => uriTemplate),
      ['test://template/{id}/data', 'test://cities/{country}/{city}'],
    );
    const [data] = contentsOf(await client().readResource('test://template/a%20b/data'));
    assert.is(Object(data).uri, 'test://template/a%20b/data');
    assert.equal(JSON.parse(Object(data).text), { id: 'a b', templateTest: true, data: 'Data for ID: a b' });
  });

  test('receives an error for an unknown resource, and no reason when a resource fails', async () => {
    const notFound = modern ? -32602 : -32002;
    const uri = 'test://nonexistent-resource-for-conformance-testing';
    const missing = await refusal(client().readResource(uri));
    assert.is(missing.code, notFound);
    assert.equal(missing.data, { uri });
    const city = await refusal(client().readResource('test://cities/france/berlin'));
    assert.is(city.code, notFound, 'also where a handler says so');
    const broken = await refusal(client().readResource('test://broken'));
    assert.is(broken.code, -32603);
    assert.not.match(String(broken.message), 'password');
  });

  test('gets prompts of each kind', async () => {
    const prompts = await client().listPrompts();
    const withArguments = Object(prompts.find(({ name }) => name === 'test_prompt_with_arguments'));
    assert.equal(withArguments.arguments[1], { name: 'arg2', description: 'Second test argument', required: true });
    const simple = await client().getPrompt('test_simple_prompt');
    assert.equal(simple.messages, [
      { role: 'user', content: { type: 'text', text: 'This is a simple prompt for testing.' } },
    ]);
    const filled = await client().getPrompt('test_prompt_with_arguments', { arg1: 'testValue1', arg2: 'testValue2' });
    assert.match(JSON.stringify(filled.messages), "arg1='testValue1', arg2='testValue2'");
    const embedded = await client().getPrompt('test_prompt_with_embedded_resource', { resourceUri: 'test://x' });
    assert.equal(Object(Object(embedded.messages)[0]).content.resource, {
      uri: 'test://x',
      mimeType: 'text/plain',
      text: 'Embedded resource content for testing.',
    });
    const image = await client().getPrompt('test_prompt_with_image');
    assert.is(Object(Object(image.messages)[0]).content.data, PNG);
    const dialogue = await client().getPrompt('review_code', { code: '1 + 1', language: 'rust' });
    assert.is(dialogue.description, 'A review of rust');
    assert.is(Object(Object(dialogue.messages)[1]).role, 'assistant');
    const missing = await refusal(client().getPrompt('test_prompt_with_arguments', { arg1: 'one' }));
    assert.is(missing.code, -32602);
    assert.match(String(missing.message), 'arg2');
    assert.is((await refusal(client().getPrompt('no_such_prompt'))).code, -32602);
  });

  test('completes arguments of prompts and variables of templates', async () => {
    const suggest = async (...asked: Parameters<OfficialClient['complete']>): Promise<Loose> =>
      Object((await client().complete(...asked)).completion);
    const prompt = { type: 'ref/prompt', name: 'test_prompt_with_arguments' } as const;
    const cities = { type: 'ref/resource', uri: 'test://cities/{country}/{city}' } as const;
    assert.equal((await suggest(prompt, { name: 'arg1', value: 'par' })).values, ['paris', 'park', 'party']);
    const many = await suggest(prompt, { name: 'arg2', value: '' });
    assert.is(Object(many.values).length, 100);
    assert.is(many.total, 150);
    assert.is(many.hasMore, true);
    assert.equal((await suggest(cities, { name: 'country', value: 'j' })).values, ['japan']);
    const chosen = { country: 'japan' };
    assert.equal((await suggest(cities, { name: 'city', value: 'k' }, chosen)).values, ['kyoto']);
    assert.equal((await suggest(cities, { name: 'nothing', value: '' })).values, []);
  });
}
