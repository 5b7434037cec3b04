/** Tools that return each kind of content, and structured data. */
import { audio, embedded, envelopeOf, image, link, type Server, text, toolResult } from 'troupe';
import { ICON, PNG, WAV } from './media.ts';

export function addContent(server: Server): void {
  server.tool(
    'echo',
    {
      title: 'Echo',
      description: 'Returns the given text.',
      input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
      icons: [ICON],
    },
    (given) => given.text,
  );

  server.tool(
    'test_simple_text',
    { description: 'Returns a string, which becomes text content.' },
    () => 'This is a simple text response for testing.',
  );

  server.tool('test_image_content', { description: 'Returns an image: one red pixel.' }, () => image(PNG, 'image/png'));

  server.tool('test_audio_content', { description: 'Returns a sound: a short tone.' }, () => audio(WAV, 'audio/wav'));

  server.tool('test_embedded_resource', { description: 'Returns a resource inside the result.' }, () =>
    embedded('test://embedded-resource', 'This is an embedded resource content.', 'text/plain'),
  );

  server.tool('resource_link', { description: 'Returns a pointer to a resource of this server.' }, () =>
    link('test://static-text', 'static-text', { title: 'Static text', mimeType: 'text/plain' }),
  );

  server.tool('test_multiple_content_types', { description: 'Returns text, an image and a resource.' }, () => [
    text('Multiple content types test:'),
    image(PNG, 'image/png'),
    embedded('test://mixed-content-resource', JSON.stringify({ test: 'data', value: 123 }), 'application/json'),
  ]);

  server.tool('annotated_content', { description: 'Returns text for the user and text for the model.' }, () => [
    text('Done.', { audience: ['user'], priority: 1 }),
    text('Took the second path.', { audience: ['assistant'], priority: 0.2, lastModified: '2026-01-01T00:00:00Z' }),
  ]);

  server.tool(
    'add',
    {
      title: 'Add',
      description: 'Adds two numbers. The result is structured, and validated against an output schema.',
      input: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
        additionalProperties: false,
      },
      output: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
      annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    },
    ({ a, b }) => ({ sum: a + b }),
  );

  server.tool(
    'list_primes',
    {
      description: 'Lists the primes up to 50. The structured result is an array, which only 2026-07-28 supports.',
      output: { type: 'array', items: { type: 'integer' } },
    },
    () => [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47],
  );

  server.tool(
    'find_rows',
    {
      description: 'Finds rows of the table "numbers". The result uses the common envelope.',
      input: {
        type: 'object',
        properties: {
          table: { type: 'string' },
          count: { type: 'integer', minimum: 0, maximum: 100_000, description: 'Number of rows. Default: 3.' },
        },
        required: ['table'],
      },
      output: envelopeOf({
        type: 'array',
        items: { type: 'object', properties: { n: { type: 'integer' }, square: { type: 'integer' } } },
      }),
    },
    ({ table, count = 3 }) => {
      if (table !== 'numbers')
        return toolResult({ error: { code: 'no_such_table', message: `no table "${table}": there is "numbers"` } });
      const data = Array.from({ length: count }, (_, n) => ({ n, square: n * n }));
      return toolResult({ data, meta: { tier: 'memory' } });
    },
  );
}
