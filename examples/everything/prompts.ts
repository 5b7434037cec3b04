/** Prompts: plain, with arguments and their completion, with an embedded resource, with an image, with a dialogue. */
import { embedded, image, type Server, text } from 'troupe';
import { ICON, PNG } from './media.ts';

const LANGUAGES = ['go', 'javascript', 'python', 'rust', 'typescript'];

export function addPrompts(server: Server): void {
  server.prompt(
    'test_simple_prompt',
    { title: 'Simple', description: 'One message.', icons: [ICON] },
    () => 'This is a simple prompt for testing.',
  );

  server.prompt(
    'test_prompt_with_arguments',
    {
      description: 'One message with two arguments.',
      arguments: [
        { name: 'arg1', description: 'First test argument', required: true },
        { name: 'arg2', description: 'Second test argument', required: true },
      ],
      complete: {
        arg1: (typed) => ['paris', 'park', 'party', 'testing'].filter((value) => value.startsWith(typed)),
        arg2: (typed) => Array.from({ length: 150 }, (_, i) => `value-${i}`).filter((value) => value.startsWith(typed)),
      },
    },
    ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  );

  server.prompt(
    'test_prompt_with_embedded_resource',
    {
      description: 'A resource with an instruction.',
      input: {
        type: 'object',
        properties: { resourceUri: { type: 'string', description: 'URI of the resource to embed' } },
        required: ['resourceUri'],
      },
    },
    ({ resourceUri }) => [
      { role: 'user', content: embedded(resourceUri, 'Embedded resource content for testing.', 'text/plain') },
      { role: 'user', content: text('Please process the embedded resource above.') },
    ],
  );

  server.prompt('test_prompt_with_image', { description: 'An image with an instruction.' }, () => [
    { role: 'user', content: image(PNG, 'image/png') },
    { role: 'user', content: text('Please analyze the image above.') },
  ]);

  server.prompt(
    'review_code',
    {
      title: 'Review code',
      description: 'Starts a code review.',
      arguments: [
        { name: 'code', title: 'Code', description: 'The code to review', required: true },
        { name: 'language', title: 'Language', description: 'The programming language' },
      ],
      complete: { language: (typed) => LANGUAGES.filter((language) => language.startsWith(typed.toLowerCase())) },
    },
    ({ code, language = 'plain text' }) => ({
      description: `A review of ${language}`,
      messages: [
        { role: 'user', content: text(`Review this ${language}:\n${code}`) },
        { role: 'assistant', content: text('Which matters more to you here: speed, or clarity?') },
      ],
    }),
  );
}
