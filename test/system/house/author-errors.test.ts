/** docs/author-errors.md quotes messages that authors get: each is caused here, or is a text of the code. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { connect } from '../../../src/client/client.ts';
import { type Context, createServer } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';

const test = suite('errors for authors');
const root = fileURLToPath(new URL('../../..', import.meta.url));
/** Sections whose messages need a process, which other tests start. Their text is in these folders. */
const ELSEWHERE = {
  'When the program starts': ['src/cli'],
  'In the log': ['src/features/workers'],
  'In the result of a call': ['src/features/state'],
} as const;

const page = readFileSync(join(root, 'docs/author-errors.md'), 'utf8');
const quoted = [...page.matchAll(/^## (.*)\n([\s\S]*?)(?=^## |$(?![\s\S]))/gm)].flatMap(([, section = '', rows = '']) =>
  [...rows.matchAll(/^\| `([^`]+)` \|/gm)].map(([, message = '']) => ({ section, message })),
);

/** The text of all files of a folder. */
function textOf(folder: string): string {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(root, folder, file), 'utf8'))
    .join('\n');
}

/** Makes the mistakes of the page. @returns all messages that their author gets */
async function mistakes(): Promise<string[]> {
  const messages: string[] = [];
  const log = (_level: string, message: string): void => void messages.push(message);
  const server = createServer({ name: 'mistakes', version: '1.0.0', log });
  const register = (...args: readonly unknown[]): void => {
    try {
      Reflect.apply(server.tool, server, args);
    } catch (error) {
      messages.push(String(error));
    }
  };
  server.tool('taken', () => '');
  register('taken', () => '');
  register('two words', () => '');
  register('fields', { input: { a: z.number() } }, () => '');
  register('nothing', {});
  try {
    createServer({ name: 'x', version: '1', ...JSON.parse('{"limits":{"timeout":5}}') });
  } catch (error) {
    messages.push(String(error));
  }
  const results: Readonly<Record<string, unknown>> = {
    map: { when: new Map() },
    promise: { later: Promise.resolve(1) },
    big: { number: 1n },
    bytes: new Uint8Array(1),
  };
  for (const [name, result] of Object.entries(results)) register(name, () => result);
  register('output', { output: z.object({ a: z.number() }) }, () => ({ a: 'one' }));
  register('silent', () => {
    String('Hello');
  });
  register('text', (_: unknown, { state }: Context) => `You have ${String(state.get('points'))}`);
  register('drops', { input: z.object({ user_name: z.string().optional() }) }, () => 'done');
  register('input', { input: z.object({ a: z.number() }) }, () => '');
  const ANSWER = z.object({ a: z.string() });
  server.tool('asks', async (_, ctx) => (await ctx.elicit({ message: '', schema: ANSWER })).status);
  server.tool('forgets', async (_, ctx) => void ctx.elicit({ message: '', schema: ANSWER }));
  server.tool('nested', async (_, ctx) => (await ctx.elicit({ message: '', schema: z.object({ a: ANSWER }) })).status);
  server.tool('hangs', { timeoutMs: 1 }, () => new Promise<string>(() => {}));
  server.resource('app://broken', () => {
    throw new Error('no database');
  });
  const asked = await connect(server, { elicit: () => ({ action: 'accept', content: { a: '' } }) });
  const silent = await connect(server);
  const attempt = async (call: Promise<unknown>): Promise<void> =>
    void messages.push(await call.then((result) => JSON.stringify(result), String));
  for (const name of [...Object.keys(results), 'output', 'input', 'asks', 'hangs', 'none', 'silent'])
    await attempt(silent.call(name));
  await attempt(silent.call('drops', { userName: 'Ada' }));
  // Its state belongs to its session.
  const session = await connect(server, { eras: 'legacy' });
  await attempt(session.call('text'));
  await session.close();
  for (const name of ['forgets', 'nested']) await attempt(asked.call(name));
  await attempt(silent.read('app://broken'));
  await silent.close();
  await asked.close();
  await server.close();
  return messages;
}

test('the page quotes messages that an author gets', async () => {
  assert.ok(quoted.length >= 20);
  const messages = (await mistakes()).map((message) => message.replaceAll('\\"', '"'));
  const missing = quoted.filter(({ section, message }) => {
    if (messages.some((each) => each.includes(message))) return false;
    const folders = Object.entries(ELSEWHERE).find(([name]) => name === section)?.[1] ?? [];
    return !folders.some((folder) => textOf(folder).includes(message));
  });
  assert.equal(missing, []);
});
