/** The first form of a tool in a directory: a definition. */
import { defineTool } from 'troupe';
import { z } from 'zod';

export default defineTool({
  name: 'add',
  title: 'Add',
  description: 'Adds two numbers',
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.object({ sum: z.number() }),
  annotations: { readOnlyHint: true },
  handler: ({ a, b }) => ({ sum: a + b }),
});
