/** The third form: a function with a schema. Its own name is the tool's name. */

export function shout({ text, marks = 1 }: { readonly text: string; readonly marks?: number }): string {
  return text.toUpperCase() + '!'.repeat(marks);
}

shout.description = 'Says it in capitals';

shout.schema = {
  type: 'object',
  properties: { text: { type: 'string' }, marks: { type: 'integer', minimum: 0, maximum: 10 } },
  required: ['text'],
} as const;
