/** Tools and a prompt that request input during a call: from the user, the client's model, or the roots. */
import type { AnyQuestion, Sampled, Server } from 'troupe';
import * as z from 'zod';

/** A call whose process ends during its stream runs again, and asks again. */
const READ_ONLY = { readOnlyHint: true };
const NAME = { message: 'What is your name?', schema: z.object({ name: z.string() }) };
const CONFIRM = { message: 'Please confirm', schema: z.object({ ok: z.boolean() }) };

const PERSON = {
  type: 'object',
  properties: {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" },
  },
  required: ['username', 'email'],
} as const;

/** Every primitive type, with defaults (SEP-1034). */
const DEFAULTS = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
} as const;

/** Every kind of choice field (SEP-1330). */
const CHOICES = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: {
      type: 'string',
      oneOf: [
        { const: 'value1', title: 'First Option' },
        { const: 'value2', title: 'Second Option' },
        { const: 'value3', title: 'Third Option' },
      ],
    },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: {
      type: 'array',
      items: {
        anyOf: [
          { const: 'value1', title: 'First Choice' },
          { const: 'value2', title: 'Second Choice' },
          { const: 'value3', title: 'Third Choice' },
        ],
      },
    },
  },
} as const;

export function addAsks(server: Server): void {
  addUser(server);
  addModelAndRoots(server);
  addRounds(server);
}

function addUser(server: Server): void {
  server.tool(
    'test_elicitation',
    {
      description: 'Asks the user for a name and an address.',
      input: z.object({ message: z.string() }),
      annotations: READ_ONLY,
    },
    async ({ message }, ctx) => `User response: ${told(await ctx.elicit({ message, schema: PERSON }))}`,
  );
  server.tool(
    'test_elicitation_sep1034_defaults',
    { description: 'Asks the user with a prefilled form.', annotations: READ_ONLY },
    async (_, ctx) =>
      `Elicitation completed: ${told(await ctx.elicit({ message: 'Is this right?', schema: DEFAULTS }))}`,
  );
  server.tool(
    'test_elicitation_sep1330_enums',
    { description: 'Asks the user with every kind of choice field.', annotations: READ_ONLY },
    async (_, ctx) => `Elicitation completed: ${told(await ctx.elicit({ message: 'Choose.', schema: CHOICES }))}`,
  );
  server.tool(
    'test_streaming_elicitation',
    { description: 'Reports progress, then asks the user.', annotations: READ_ONLY },
    async (_, ctx) => {
      ctx.progress(1, 2, 'about to ask');
      return told(await ctx.elicit(CONFIRM));
    },
  );
  server.tool('visit', { description: 'Asks the user to open a page.' }, async (_, ctx) => {
    const { status } = await ctx.elicitUrl({ message: 'Please sign in.', url: 'https://example.com/sign-in' });
    return `The user has ${status} it.`;
  });
  server.prompt(
    'test_input_required_result_prompt',
    { description: 'Asks the user before it returns a message.' },
    async (_, ctx) => {
      const { user_context: answer } = await ctx.ask({
        user_context: {
          elicit: { message: 'What context should the prompt use?', schema: z.object({ context: z.string() }) },
        },
      });
      return `Use this context: ${answer.status === 'accepted' ? answer.content.context : answer.status}`;
    },
  );
}

function addModelAndRoots(server: Server): void {
  server.tool(
    'test_sampling',
    { description: "Asks the client's model.", input: z.object({ prompt: z.string() }), annotations: READ_ONLY },
    async ({ prompt }, ctx) => `LLM response: ${saidBy(await ctx.sample(question(prompt, 100)))}`,
  );
  server.tool(
    'test_input_required_result_sampling',
    { description: "Asks the client's model for a capital." },
    async (_, ctx) => {
      const { capital_question: answer } = await ctx.ask({
        capital_question: { sample: question('What is the capital of France?', 100) },
      });
      return saidBy(answer);
    },
  );
  server.tool(
    'test_input_required_result_list_roots',
    { description: 'Asks where the user works.' },
    async (_, ctx) => {
      const { client_roots: roots } = await ctx.ask({ client_roots: { roots: true } });
      return `Roots: ${roots.map(({ uri }) => uri).join(', ')}`;
    },
  );
}

function addRounds(server: Server): void {
  server.tool('test_input_required_result_elicitation', { description: 'Asks for a name.' }, async (_, ctx) => {
    const { user_name: answer } = await ctx.ask({ user_name: { elicit: NAME } });
    return answer.status === 'accepted' ? `Hello, ${answer.content.name}!` : 'Hello, whoever you are!';
  });
  for (const name of ['test_input_required_result_request_state', 'test_input_required_result_tampered_state'])
    server.tool(name, { description: 'Asks for confirmation.' }, async (_, ctx) => {
      const { confirm } = await ctx.ask({ confirm: { elicit: CONFIRM } });
      return `state-ok: ${told(confirm)}`;
    });
  server.tool(
    'test_input_required_result_multiple_inputs',
    { description: 'Asks the user, the model and for roots at the same time.' },
    async (_, ctx) => {
      const { user_name, greeting, client_roots } = await ctx.ask({
        user_name: { elicit: NAME },
        greeting: { sample: question('Generate a greeting', 50) },
        client_roots: { roots: true },
      });
      return `${saidBy(greeting)} ${told(user_name)} ${client_roots.length} roots`;
    },
  );
  server.tool(
    'test_input_required_result_multi_round',
    { description: 'Asks several questions in sequence.' },
    async (_, ctx) => {
      const { step1 } = await ctx.ask({
        step1: { elicit: { message: 'Step 1: What is your name?', schema: NAME.schema } },
      });
      const { step2 } = await ctx.ask({
        step2: {
          elicit: { message: 'Step 2: What is your favorite color?', schema: z.object({ color: z.string() }) },
        },
      });
      return `${told(step1)} ${told(step2)}`;
    },
  );
  server.tool(
    'test_input_required_result_capabilities',
    { description: 'Asks everything that the client supports.' },
    async (_, ctx) => {
      const { elicitation, sampling } = ctx.client.capabilities;
      const questions: Record<string, AnyQuestion> = {
        ...(elicitation ? { user_name: { elicit: NAME } } : {}),
        ...(sampling ? { greeting: { sample: question('Generate a greeting', 50) } } : {}),
      };
      return Object.keys(questions).length === 0 ? 'Nothing to ask.' : JSON.stringify(await ctx.ask(questions));
    },
  );
}

function question(text: string, maxTokens: number) {
  return { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens } as const;
}

function saidBy({ content }: Sampled): string {
  const blocks = Array.isArray(content) ? content : [content];
  return blocks.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n');
}

/** An answer as text. */
function told(answer: { readonly status: 'accepted' | 'declined' | 'cancelled'; readonly content?: unknown }): string {
  const action = { accepted: 'accept', declined: 'decline', cancelled: 'cancel' }[answer.status];
  return `action=${action}, content=${JSON.stringify(answer.content ?? {})}`;
}
