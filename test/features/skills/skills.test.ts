/** Skills (SEP-2640): folders as they are listed, read, edited, and guarded. */
import { hash } from 'node:crypto';
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join, relative } from 'node:path';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { readBytes, scanSkills } from '../../../src/features/skills/skill-scan.ts';
import { ErrorCode } from '../../../src/index.ts';
import { connect, type TestClient } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession, loggedServer } from '../../harness/memory.ts';
import type { Tree } from '../discovery/tree.ts';
import { officialHost, readAll, skillFile, skillTree } from './support.ts';

const test = suite('skills');

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;

/** Two skills with folders, one of them in a folder of the other, beside what is no skill. */
const FILES = {
  'README.md': 'no skill',
  'pdf/SKILL.md': skillFile('pdf', 'Fills forms', 'license: MIT\nmetadata:\n  since: 2026-11-20\n'),
  'pdf/references/FORMS.md': '# Forms\r\n',
  'pdf/fill/SKILL.md': skillFile('fill'),
  'office/sheet/SKILL.md': skillFile('sheet'),
  'office/sheet/a b&ü#1?.txt': 'any name',
  'office/sheet/.hidden': 'not published',
};

/** A request of a modern client. */
function asked(client: TestClient) {
  return (method: string, params: JsonObject = {}): Promise<JsonObject> => client.modern(method, params);
}

/** The code and the message of the error that a request gets; `nothing` if it gets a result. */
function refusal(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'nothing',
    (error: unknown) => `${Object(error).code} ${error instanceof Error ? error.message : ''}`,
  );
}

/** Replaces a file as editors do: no scan finds it half written. */
function replace(tree: Tree, name: string, text: string): void {
  tree.write('.part', text);
  renameSync(tree.at('.part'), tree.at(name));
}

/** The addresses of the listed skills. */
async function listed(client: TestClient): Promise<readonly string[]> {
  const { skills } = await client.modern('skills/list', {});
  return Object(skills).map(({ uri }: { readonly uri: string }) => uri);
}

async function children(client: TestClient, uri: string): Promise<readonly string[]> {
  const { resources } = await client.modern('resources/directory/read', { uri });
  return Object(resources).map(
    (child: { readonly uri: string; readonly mimeType: string }) => `${child.uri} ${child.mimeType}`,
  );
}

test('a server without skills has none of their methods, and does not announce them', async () => {
  const { server } = loggedServer();
  server.resource('app://one', () => 'one');
  const client = await connect(server);
  assert.not('extensions' in Object((await client.modern('server/discover')).capabilities));
  for (const method of ['skills/list', 'skills/get', 'resources/directory/read'])
    assert.match(
      await refusal(client.modern(method, { uri: 'skill://a' })),
      new RegExp(`^${ErrorCode.MethodNotFound} `),
    );
  await server.close();
});

test('lists the skills of a folder in every revision, with every file, once', async () => {
  const tree = skillTree(FILES);
  const { server, logged } = loggedServer();
  const { skills, problems } = await server.skills(tree.path, { watch: false });
  assert.equal(skills, [
    { name: 'sheet', uri: 'skill://office/sheet/SKILL.md' },
    { name: 'pdf', uri: 'skill://pdf/SKILL.md' },
    { name: 'fill', uri: 'skill://pdf/fill/SKILL.md' },
  ]);
  assert.equal(problems, []);
  const modern = await connect(server);
  const result = await modern.modern('skills/list');
  const [sheet, pdf, fill]: readonly JsonObject[] = Object(result.skills);
  assert.equal(result.ttlMs, 0);
  assert.equal(result.cacheScope, 'public');
  assert.equal(Object(pdf).frontmatter, {
    name: 'pdf',
    description: 'Fills forms',
    license: 'MIT',
    metadata: { since: '2026-11-20' },
  });
  const uris = (skill: unknown): readonly string[] =>
    Object(skill).resources.map(({ uri }: { readonly uri: string }) => uri);
  assert.equal(uris(sheet), ['skill://office/sheet/SKILL.md', 'skill://office/sheet/a%20b%26%C3%BC%231%3F.txt']);
  assert.equal(uris(pdf), ['skill://pdf/SKILL.md', 'skill://pdf/fill/SKILL.md', 'skill://pdf/references/FORMS.md']);
  assert.equal(uris(fill), ['skill://pdf/fill/SKILL.md']);
  assert.equal(await modern.modern('skills/get', { uri: 'skill://pdf/SKILL.md' }).then(({ skill }) => skill), pdf);
  for (const revision of LEGACY) {
    const client = await connect(server);
    const { capabilities } = await client.initialize(revision);
    assert.equal(Object(capabilities).extensions, { 'io.modelcontextprotocol/skills': { directoryRead: true } });
    assert.equal(await client.send('skills/list'), { skills: result.skills });
    assert.equal(await client.send('skills/get', { uri: 'skill://pdf/SKILL.md' }), { skill: pdf });
  }
  assert.equal(logged, []);
  await server.close();
});

test('only SKILL.md is in the list of resources, with the name and description of its frontmatter', async () => {
  const { server } = loggedServer();
  await server.skills(skillTree(FILES).path, { watch: false });
  const client = await connect(server);
  const { resources } = await client.modern('resources/list');
  assert.equal(
    Object(resources).map(({ uri, name, description, mimeType }: JsonObject) => [uri, name, description, mimeType]),
    [
      ['skill://office/sheet/SKILL.md', 'sheet', 'Does sheet', 'text/markdown'],
      ['skill://pdf/SKILL.md', 'pdf', 'Fills forms', 'text/markdown'],
      ['skill://pdf/fill/SKILL.md', 'fill', 'Does fill', 'text/markdown'],
    ],
  );
  await server.close();
});

test('lists directories page by page, and rejects what is no directory', async () => {
  const tree = skillTree({ ...FILES, 'pdf/z.md': 'z' });
  const { server } = loggedServer({ limits: { pageSize: 2 } });
  await server.skills(tree.path, { watch: false });
  const client = await connect(server);
  const send = asked(client);
  const first = await send('resources/directory/read', { uri: 'skill://pdf' });
  assert.equal(
    Object(first.resources).map(({ uri, name, mimeType }: JsonObject) => [uri, name, mimeType]),
    [
      ['skill://pdf/SKILL.md', 'pdf', 'text/markdown'],
      ['skill://pdf/fill', 'fill', 'inode/directory'],
    ],
  );
  const second = await send('resources/directory/read', { uri: 'skill://pdf', cursor: String(first.nextCursor) });
  assert.equal(
    Object(second.resources).map(({ uri }: JsonObject) => uri),
    ['skill://pdf/references', 'skill://pdf/z.md'],
  );
  assert.is(second.nextCursor, undefined);
  assert.equal(await children(client, 'skill://office'), ['skill://office/sheet inode/directory']);
  for (const uri of [
    'skill://pdf/SKILL.md',
    'skill://pdf/',
    'skill://',
    'skill://pdf/../pdf',
    'skill://PDF',
    'skill://none',
    'app://pdf',
  ])
    assert.match(await refusal(send('resources/directory/read', { uri })), /^-32602 params\.uri: expected a directory/);
  for (const cursor of ['', 'x', Buffer.from('skill://pdf').toString('base64url'), 'skill://pdf/fill'])
    assert.match(await refusal(send('resources/directory/read', { uri: 'skill://pdf', cursor })), /^-32602 .*cursor/);
  await server.close();
});

test('S-60: serves nothing that is no file of a skill, and makes no path of an address', async () => {
  const tree = skillTree({ ...FILES, 'secret.txt': 'secret' });
  symlinkSync(tree.at('secret.txt'), tree.at('pdf/link.txt'));
  symlinkSync(tree.path, tree.at('pdf/loop'));
  const { server } = loggedServer();
  await server.skills(tree.path, { watch: false });
  const client = await connect(server);
  const { skill } = await client.modern('skills/get', { uri: 'skill://pdf/SKILL.md' });
  assert.is(Object(skill).resources.length, 3);
  for (const uri of [
    'skill://pdf/link.txt',
    'skill://pdf/loop/README.md',
    'skill://pdf/../secret.txt',
    'skill://pdf/%2e%2e/secret.txt',
    'skill://pdf/..%2fsecret.txt',
    'skill://pdf/references/../SKILL.md',
    'skill://pdf/skill.md',
    'skill://office/sheet/.hidden',
    'skill://README.md',
    'file:///etc/passwd',
  ])
    assert.match(await refusal(client.modern('resources/read', { uri })), /^-32602 Resource not found/, uri);
  assert.match(
    await refusal(client.modern('skills/get', { uri: 'skill://pdf/references/FORMS.md' })),
    /^-32602 Unknown skill/,
  );
  await server.close();
});

for (const revision of ['2025-11-25', '2026-07-28'] as const)
  test(`the official SkillsClient reads every file, also after an edit (${revision})`, async () => {
    const tree = skillTree(FILES);
    writeFileSync(tree.at('pdf/picture.png'), Buffer.from([0x89, 0x50, 0, 0xff]));
    // Bytes that a decoder may lose.
    writeFileSync(tree.at('pdf/mark.txt'), Buffer.from('\uFEFFmark\r\n'));
    const { server } = loggedServer();
    await server.skills(tree.path, { watch: false });
    const host = await officialHost(server, revision);
    assert.ok(host.skills.supported && host.skills.directoryRead);
    assert.is(await readAll(host), 2 + 5 + 1);
    const { resources } = await host.skills.readDirectory('skill://pdf');
    assert.is(resources.length, 5);
    const { skill } = await host.skills.get('skill://pdf/SKILL.md');
    tree.write('pdf/references/FORMS.md', '# Other\r\n');
    tree.write('pdf/references/NEW.md', '# New');
    // The entry that the host has is of the old files: it must not use the new one with it.
    const stale = await host.skills.read(skill, 'references/FORMS.md').catch((error: unknown) => error);
    assert.match(String(stale), /digest/);
    assert.is(await readAll(host), 2 + 6 + 1);
    await host.client.close();
    await server.close();
  });

test('S-61: a read returns the bytes of the current entry, whichever file has changed', async () => {
  const tree = skillTree(FILES);
  const { server, logged } = loggedServer();
  await server.skills(tree.path, { watch: false });
  const client = await connect(server);
  const read = async (uri: string): Promise<string> =>
    Object((await client.modern('resources/read', { uri })).contents)[0].text;
  tree.write('pdf/SKILL.md', skillFile('pdf', 'Fills other forms'));
  assert.match(await read('skill://pdf/SKILL.md'), 'Fills other forms');
  const { skill } = await client.modern('skills/get', { uri: 'skill://pdf/SKILL.md' });
  assert.is(Object(skill).frontmatter.description, 'Fills other forms');
  // The same length, and perhaps the same time.
  tree.write('pdf/references/FORMS.md', '# Norms\r\n');
  assert.is(await read('skill://pdf/references/FORMS.md'), '# Norms\r\n');
  const { skill: current } = await client.modern('skills/get', { uri: 'skill://pdf/SKILL.md' });
  const forms = Object(current).resources.find(({ uri }: JsonObject) => uri === 'skill://pdf/references/FORMS.md');
  assert.is(forms.digest, `sha256:${hash('sha256', '# Norms\r\n')}`);
  tree.remove('pdf/references');
  assert.match(await refusal(read('skill://pdf/references/FORMS.md')), /^-32602 Resource not found/);
  assert.equal(await children(client, 'skill://pdf'), [
    'skill://pdf/SKILL.md text/markdown',
    'skill://pdf/fill inode/directory',
  ]);
  tree.write('pdf/SKILL.md', 'no frontmatter');
  assert.match(await refusal(read('skill://pdf/SKILL.md')), /Resource not found/);
  assert.equal(await listed(client), ['skill://office/sheet/SKILL.md', 'skill://pdf/fill/SKILL.md']);
  assert.match(logged.join('\n'), /warning: .*pdf\/SKILL\.md:1: expected a first line "---".*left out/);
  await server.close();
});

test('S-60: a link in the place of a file is not followed', async () => {
  const tree = skillTree({ ...FILES, 'secret.txt': '# Forms\r\n' });
  const { server } = loggedServer();
  await server.skills(tree.path, { watch: false });
  const client = await connect(server);
  unlinkSync(tree.at('pdf/references/FORMS.md'));
  symlinkSync(tree.at('secret.txt'), tree.at('pdf/references/FORMS.md'));
  assert.match(await refusal(client.modern('resources/read', { uri: 'skill://pdf/references/FORMS.md' })), /not found/);
  await server.close();
});

test('S-60: a link in the place of a folder is not followed, whenever it got there', async () => {
  const secret = skillTree({ 'x.md': 'secret' });
  const tree = skillTree({ 'pdf/SKILL.md': skillFile('pdf'), 'pdf/references/x.md': 'x' });
  const [root, link] = [await realpath(tree.path), tree.at('pdf/link')];
  symlinkSync(secret.path, link);
  // A scan that found a folder there before opens the file now.
  assert.match(await refusal(readBytes(join(root, 'pdf/link/x.md'), 10)), /it is a link/);
  assert.type(await readBytes(join(root, 'pdf/references/x.md'), 10), 'object');
});

/** What is wrong with a SKILL.md, its text, and the message with its line. */
const INVALID: readonly (readonly [what: string, text: string | Buffer, message: RegExp])[] = [
  ['no frontmatter', '# pdf\n', /:1: expected a first line "---"/],
  ['spaces after the dashes', '--- \nname: pdf\ndescription: x\n---\n', /:1: expected a first line "---"/],
  ['no end', '---\nname: pdf\ndescription: x\n', /:1: expected a frontmatter between two lines/],
  ['invalid YAML', '---\nname: pdf\ndescription: "x\nmore: 1\n---\n', /:[345]: the frontmatter is not valid YAML/],
  [
    'a value twice',
    '---\nname: pdf\nname: pdf\ndescription: x\n---\n',
    /:3: the frontmatter is not valid YAML: Map keys must be unique/,
  ],
  ['a list', '---\n- pdf\n---\n', /:2: frontmatter: expected fields/],
  [
    'an alias bomb',
    `---\nname: pdf\ndescription: x\na: &a [1,1]\n${[...'bcdefghij'].map((key, at) => `${key}: &${key} [*${'abcdefghi'[at]},*${'abcdefghi'[at]}]\n`).join('')}---\n`,
    /not valid YAML: Excessive alias count/,
  ],
  [
    'few aliases of a long text',
    `---\nname: pdf\ndescription: x\na: &a ${'x'.repeat(10_000)}\nb: [*a, *a]\n---\n`,
    /:5: expected a frontmatter of at most 16384 characters when its aliases are resolved/,
  ],
  [
    'a value that contains itself',
    '---\nname: pdf\ndescription: x\na: &a [*a]\n---\n',
    /:4: expected a frontmatter of at most 16384 characters/,
  ],
  [
    'another name',
    '---\ndescription: x\nname: pfd\n---\n',
    /:3: frontmatter\.name: expected the name of the folder, "pdf", got string "pfd"/,
  ],
  ['a bad name', '---\nname: Pdf--x\ndescription: x\n---\n', /:2: frontmatter\.name: expected 1 to 64/],
  [
    'no description',
    '---\nname: pdf\n---\n',
    /:2: frontmatter\.description: expected 1 to 1024 characters, got nothing/,
  ],
  [
    'a long description',
    `---\nname: pdf\n\ndescription: ${'x'.repeat(1_025)}\n---\n`,
    /:4: frontmatter\.description: .*got 1025/,
  ],
  [
    'a number as a description',
    '---\nname: pdf\ndescription: 12\n---\n',
    /:3: frontmatter\.description: .*got number 12/,
  ],
  [
    'long compatibility',
    `---\nname: pdf\ndescription: x\ncompatibility: ${'x'.repeat(501)}\n---\n`,
    /:4: frontmatter\.compatibility/,
  ],
  [
    'numbers in metadata',
    '---\nname: pdf\ndescription: x\nmetadata:\n  version: 1.0\n---\n',
    /:5|:4: frontmatter\.metadata: expected fields whose values are text/,
  ],
  [
    'reserved metadata',
    '---\nname: pdf\ndescription: x\nmetadata:\n  io.modelcontextprotocol/x: y\n---\n',
    /:4: frontmatter\.metadata: .*reserved/,
  ],
  [
    'a number that JSON has not',
    '---\nname: pdf\ndescription: x\nsize: .inf\n---\n',
    /:4: frontmatter\.size: JSON cannot represent/,
  ],
  [
    'a number as a field',
    '---\nname: pdf\ndescription: x\n1: y\n---\n',
    /:4: frontmatter: expected field names that are text, got 1/,
  ],
  [
    'a field of every object',
    '---\nname: pdf\ndescription: x\n__proto__: y\n---\n',
    /:4: frontmatter: expected field names that are text, got __proto__/,
  ],
  ['no text', Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff]), /:1: expected text in UTF-8/],
];

for (const [what, text, message] of INVALID)
  test(`a SKILL.md with ${what} is left out and reported with its line; the other skills are served`, async () => {
    const tree = skillTree({ 'fill/SKILL.md': skillFile('fill'), 'pdf/x.md': 'x' });
    writeFileSync(tree.at('pdf/SKILL.md'), text);
    const { server, logged } = loggedServer();
    const { problems, skills } = await server.skills(tree.path, { watch: false });
    assert.equal(skills, [{ name: 'fill', uri: 'skill://fill/SKILL.md' }]);
    assert.is(problems.length, 1);
    assert.match(logged.join('\n'), message);
    assert.match(
      logged.join('\n'),
      `${relative(process.cwd(), tree.at('pdf/SKILL.md')).replace(/^\.\..*/, tree.at('pdf/SKILL.md'))}:`,
    );
    const client = await connect(server);
    assert.match(await refusal(client.modern('resources/read', { uri: 'skill://pdf/x.md' })), /not found/);
    await server.close();
    const strict = loggedServer().server;
    assert.match(await refusal(strict.skills(tree.path, { watch: false, strict: true })), message);
    // The program has handled the error.
    await connect(strict);
    await strict.close();
  });

test('a server does not listen without a folder that its program does not await', async () => {
  const tree = skillTree({ 'pdf/SKILL.md': 'nothing' });
  const { server } = loggedServer();
  void server.skills(tree.path, { watch: false, strict: true });
  assert.match(await refusal(connect(server)), /pdf\/SKILL\.md:1: expected a first line/);
  const missing = loggedServer().server;
  void missing.skills(tree.at('none'));
  assert.match(await refusal(connect(missing)), /expected a folder, found nothing/);
});

test('a skill with too many files or bytes, or a name that hosts reject, is left out', async () => {
  const tree = skillTree({
    ...Object.fromEntries(Array.from({ length: 513 }, (_, number) => [`many/${number}`, ''])),
    'many/SKILL.md': skillFile('many'),
    'large/SKILL.md': skillFile('large'),
    'odd/SKILL.md': skillFile('odd'),
    'odd/a\\b': '',
    'small/skill.md': skillFile('small'),
    'good/SKILL.md': skillFile('good'),
  });
  writeFileSync(tree.at('large/a.bin'), Buffer.alloc(16_777_217));
  const { server, logged } = loggedServer();
  const { skills } = await server.skills(tree.path, { watch: false });
  assert.equal(
    skills.map(({ name }) => name),
    ['good'],
  );
  const all = logged.join('\n');
  assert.match(all, /many: expected a skill of at most 512 files, found more/);
  assert.match(all, /large\/a\.bin: expected a skill of at most 16777216 bytes/);
  assert.match(all, /a\\b: expected a name without backslashes/);
  assert.match(all, /small\/skill\.md: expected the name SKILL\.md/);
  await server.close();
});

test('skills in folders of each other share their files, and each checks the names below its own folder', async () => {
  const files: Record<string, string> = {};
  let path = '';
  for (let depth = 0; depth < 50; depth += 1) {
    path += `s${depth}/`;
    files[`${path}SKILL.md`] = skillFile(`s${depth}`);
  }
  files['outer/SKILL.md'] = skillFile('outer');
  files['outer/a\\b/inner/SKILL.md'] = skillFile('inner');
  const { path: root } = skillTree(files);
  const { skills, files: served, problems } = await scanSkills(root, '');
  assert.equal(
    problems.map(({ file, message }) => `${relative(root, file)}: ${message}`),
    ['outer/a\\b/inner/SKILL.md: expected a name without backslashes and control characters'],
  );
  assert.equal(
    skills.map(({ files: own }) => own.length),
    [1, ...Array.from({ length: 50 }, (_, depth) => 50 - depth)],
  );
  assert.is(new Set(skills.flatMap(({ files: own }) => own)).size, 51);
  assert.is(served.size, 51);
});

test('several folders, prefixes, and a folder that is a skill itself; an address that is taken is left out', async () => {
  const tree = skillTree({ 'one/pdf/SKILL.md': skillFile('pdf'), 'two/pdf/SKILL.md': skillFile('pdf') });
  const { server, logged } = loggedServer();
  await server.skills(tree.at('one'), { watch: false });
  await server.skills(tree.at('two'), { watch: false, prefix: 'acme/office' });
  await server.skills(tree.at('two/pdf'), { watch: false, prefix: 'solo' });
  await server.skills(tree.at('two'), { watch: false });
  const client = await connect(server);
  assert.equal(await listed(client), [
    'skill://pdf/SKILL.md',
    'skill://acme/office/pdf/SKILL.md',
    'skill://solo/pdf/SKILL.md',
  ]);
  assert.match(
    logged.join('\n'),
    /two: skill:\/\/pdf\/SKILL\.md is left out: .* is already registered \(by skills in .*one\)/,
  );
  assert.match(
    logged.join('\n'),
    /skill:\/\/pdf\/SKILL\.md and skill:\/\/acme\/office\/pdf\/SKILL\.md have the same name/,
  );
  assert.equal(await children(client, 'skill://acme'), ['skill://acme/office inode/directory']);
  await server.close();
});

test('rejects a folder that is not there', async () => {
  const tree = skillTree(FILES);
  const { server } = loggedServer();
  const fails = async (path: string | URL, options: object, message: RegExp): Promise<void> =>
    assert.match(await refusal(server.skills(path, options)), message);
  await fails(tree.at('none'), {}, /none: expected a folder, found nothing/);
  await fails(tree.at('README.md'), {}, /README\.md: expected a folder, found a file/);
});

test('a change of a file reaches clients: new skills, new descriptions, and files that they watch', async () => {
  const tree = skillTree(FILES);
  const { server } = loggedServer({ limits: { gatherMs: 1 } });
  const registered = await server.skills(tree.path);
  const client = await inSession(server, '2025-11-25');
  const changed = (): Promise<JsonObject> => client.notification('notifications/resources/list_changed');
  const described = changed();
  replace(tree, 'pdf/SKILL.md', skillFile('pdf', 'Reads forms'));
  await described;
  const added = changed();
  // A folder comes whole: it is renamed into its place.
  mkdirSync(tree.at('.new'));
  writeFileSync(tree.at('.new/SKILL.md'), skillFile('mail'));
  renameSync(tree.at('.new'), tree.at('mail'));
  await added;
  assert.ok((await listed(client)).includes('skill://mail/SKILL.md'));
  await client.send('resources/subscribe', { uri: 'skill://pdf/references/FORMS.md' });
  const updated = client.notification('notifications/resources/updated');
  replace(tree, 'pdf/references/FORMS.md', '# New forms');
  assert.equal(await updated, { uri: 'skill://pdf/references/FORMS.md' });
  const removed = changed();
  renameSync(tree.at('mail'), tree.at('.old'));
  await removed;
  assert.not((await listed(client)).includes('skill://mail/SKILL.md'));
  assert.is(registered.skills.length, 3);
  const withdrawn = changed();
  registered.remove();
  await withdrawn;
  assert.equal(await listed(client), []);
  await server.close();
});

test('reload reads a folder that is not watched; the list of resources changes only with a name or a description', async () => {
  const tree = skillTree(FILES);
  const { server } = loggedServer({ limits: { gatherMs: 1 } });
  const registered = await server.skills(tree.path, { watch: false });
  const changed: unknown[] = [];
  server.inspect((record) => {
    if (record.type === 'mail' && record.mail.type === 'list changed') changed.push(record.mail);
  });
  tree.write('pdf/SKILL.md', `${skillFile('pdf', 'Fills forms', 'license: MIT\n')}more`);
  await registered.reload();
  const client = await connect(server);
  const { skill } = await client.modern('skills/get', { uri: 'skill://pdf/SKILL.md' });
  assert.equal(Object(skill).frontmatter, { name: 'pdf', description: 'Fills forms', license: 'MIT' });
  tree.write('pdf/references/MORE.md', 'more');
  await registered.reload();
  assert.is((await children(client, 'skill://pdf/references')).length, 2);
  assert.equal(changed, []);
  tree.write('pdf/SKILL.md', skillFile('pdf', 'Else'));
  await registered.reload();
  assert.is(changed.length, 1);
  tree.remove('.');
  await registered.reload();
  assert.equal(registered.skills, []);
  assert.is(registered.problems.length, 1);
  await server.close();
});

test('caching hints are those of the folders: the shortest time, and private if one is', async () => {
  const tree = skillTree({ 'one/pdf/SKILL.md': skillFile('pdf'), 'two/fill/SKILL.md': skillFile('fill') });
  const { server } = loggedServer({ listTtlMs: 60_000 });
  await server.skills(tree.at('one'), { watch: false, ttlMs: 5_000, cacheScope: 'public' });
  await server.skills(tree.at('two'), { watch: false, cacheScope: 'private' });
  const send = asked(await connect(server));
  const hints = async (method: string, params?: JsonObject): Promise<unknown> => {
    const { ttlMs, cacheScope } = await send(method, params);
    return [ttlMs, cacheScope];
  };
  assert.equal(await hints('skills/list'), [5_000, 'private']);
  assert.equal(await hints('skills/get', { uri: 'skill://pdf/SKILL.md' }), [5_000, 'public']);
  assert.equal(await hints('skills/get', { uri: 'skill://fill/SKILL.md' }), [60_000, 'private']);
  assert.equal(await hints('resources/directory/read', { uri: 'skill://pdf' }), [5_000, 'public']);
  assert.equal(await hints('resources/read', { uri: 'skill://pdf/SKILL.md' }), [5_000, 'public']);
  assert.equal(await hints('resources/read', { uri: 'skill://fill/SKILL.md' }), [0, 'private']);
  await server.close();
});

test('S-62: scopes and rules decide about skills, their files and their directories', async () => {
  const tree = skillTree(FILES);
  const { server } = loggedServer();
  await server.skills(tree.at('pdf'), { watch: false, scopes: ['forms'] });
  await server.skills(tree.at('office'), {
    watch: false,
    allow: ({ auth }) => auth?.principal === 'ada' || { hidden: true },
  });
  const ada = await connect(server, { auth: { principal: 'ada' } });
  const bob = await connect(server, { auth: { principal: 'bob', scopes: ['forms'] } });
  // An element whose scopes are missing is listed, so that clients can ask for them.
  assert.ok((await listed(ada)).includes('skill://pdf/SKILL.md'));
  for (const method of ['skills/get', 'resources/read'])
    assert.match(
      await refusal(ada.modern(method, { uri: 'skill://pdf/SKILL.md' })),
      new RegExp(`^${ErrorCode.Forbidden} .*forms`),
    );
  assert.match(
    await refusal(ada.modern('resources/read', { uri: 'skill://pdf/references/FORMS.md' })),
    /lack the scope forms/,
  );
  assert.ok(await bob.modern('skills/get', { uri: 'skill://pdf/SKILL.md' }));
  // A hidden skill does not exist, nor does its directory.
  assert.ok((await listed(ada)).includes('skill://sheet/SKILL.md'));
  assert.not((await listed(bob)).includes('skill://sheet/SKILL.md'));
  assert.is((await bob.modern('skills/list')).cacheScope, 'private');
  assert.match(await refusal(bob.modern('skills/get', { uri: 'skill://sheet/SKILL.md' })), /^-32602 Unknown skill/);
  assert.match(
    await refusal(bob.modern('resources/read', { uri: 'skill://sheet/SKILL.md' })),
    /^-32602 Resource not found/,
  );
  assert.match(await refusal(bob.modern('resources/directory/read', { uri: 'skill://sheet' })), /^-32602 params\.uri/);
  assert.is((await children(ada, 'skill://sheet')).length, 2);
  await server.close();
});

test('middleware sees the requests about skills, and may answer them', async () => {
  const { server } = loggedServer();
  await server.skills(skillTree(FILES).path, { watch: false });
  const seen: string[] = [];
  server.use(async (call, _ctx, next) => {
    seen.push(call.method);
    return next();
  });
  server.use('skills/list', async (_call, _ctx, next) => {
    const { skills } = await next();
    return { skills: skills.filter(({ frontmatter }) => frontmatter.name !== 'fill') };
  });
  server.use('skills/get', async (_call, _ctx, next) => {
    const { skill } = await next();
    return { skill: { ...skill, resources: 'dynamic' } };
  });
  const client = await connect(server);
  assert.equal(await listed(client), ['skill://office/sheet/SKILL.md', 'skill://pdf/SKILL.md']);
  const { skill } = await client.modern('skills/get', { uri: 'skill://pdf/SKILL.md' });
  assert.is(Object(skill).resources, 'dynamic');
  assert.is((await children(client, 'skill://pdf')).length, 3);
  assert.equal(seen, ['skills/list', 'skills/get', 'resources/directory/read']);
  await server.close();
});
