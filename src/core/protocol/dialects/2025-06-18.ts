/** 2025-06-18 removes batches and adds structured output, resource links, titles, and `_meta` on definitions. */
import { dialect20250326 } from './2025-03-26.ts';
import { type Dialect, extend } from './dialect.ts';

export const dialect20250618: Dialect = extend(dialect20250326, {
  revision: '2025-06-18',
  batching: false,
  content: ['resource_link'],
  structured: 'object',
  forms: 'plain',
  adds: {
    implementation: ['title'],
    tool: ['title', 'outputSchema', '_meta'],
    resource: ['title', '_meta'],
    resourceTemplate: ['title', '_meta'],
    prompt: ['title', '_meta'],
    promptArgument: ['title'],
  },
});
