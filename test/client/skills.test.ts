/** Skills (SEP-2640): entries are listed without reading a file, and what is read is what the entry lists, or refused. */
import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import fc from 'fast-check';
import { type Client, ClientError, type ConnectOptions, connect, type SkillEntry } from 'troupe/client';
import { SimulatedClock } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { stringify } from 'yaml';
import { character } from '../harness/character.ts';
import { suite } from '../harness/door.ts';
import { random } from '../harness/scale.ts';

const test = suite('skills of a server');

const ROOT = 'skill://tools/pdf-processing';
const MANIFEST = `${ROOT}/SKILL.md`;
const FORMS = `${ROOT}/references/FORMS.md`;
const LOGO = `${ROOT}/assets/logo.bin`;
const FRONTMATTER = {
  name: 'pdf-processing',
  description: 'Extract, fill, and assemble PDF documents',
  metadata: { version: '1.0', since: '2026-01-31' },
  'allowed-tools': ['Read', 'Write'],
};
const TEXT = `---
name: pdf-processing
description: Extract, fill, and assemble PDF documents # as its title says
metadata: { version: "1.0", since: 2026-01-31 }
allowed-tools:
  - Read
  - Write
---
# PDF

See [forms](references/FORMS.md).
`;
const BINARY = Buffer.from([0, 255, 254, 1]);

const digestOf = (bytes: string | Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const listed = (uri: string, bytes: string | Uint8Array) => ({
  uri,
  digest: digestOf(bytes),
  size: Buffer.byteLength(bytes),
});

/** A server whose skills and files a test sets, and that counts what it is asked. */
interface Hostile {
  readonly url: string;
  readonly asked: string[];
  pages: readonly (readonly unknown[])[];
  ttlMs: number;
  extension: boolean;
  /** Files by their address: text, or bytes. */
  readonly files: Map<string, string | Uint8Array>;
  /** Replaces the result of a method. */
  readonly results: Map<string, unknown>;
  close(): void;
}

const ENTRY: SkillEntry = {
  uri: MANIFEST,
  frontmatter: FRONTMATTER,
  resources: [listed(MANIFEST, TEXT), listed(FORMS, 'Forms.\n'), listed(LOGO, BINARY)],
};

async function hostile(): Promise<Hostile> {
  const files = new Map<string, string | Uint8Array>([
    [MANIFEST, TEXT],
    [FORMS, 'Forms.\n'],
    [LOGO, BINARY],
  ]);
  const made: Omit<Hostile, 'url'> = {
    asked: [],
    pages: [[ENTRY]],
    ttlMs: 0,
    extension: true,
    files,
    results: new Map(),
    close: () => http.close(),
  };
  const resultOf = (method: string, params: Readonly<Record<string, unknown>>): unknown => {
    const set = made.results.get(method);
    if (set !== undefined) return set;
    const capabilities = {
      resources: {},
      ...(made.extension ? { extensions: { 'io.modelcontextprotocol/skills': {} } } : {}),
    };
    if (method === 'server/discover')
      return { supportedVersions: ['2026-07-28'], capabilities, serverInfo: { name: 'hostile', version: '1' } };
    if (method === 'initialize')
      return { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'hostile', version: '1' } };
    if (method === 'skills/list') {
      const page = Number(params.cursor ?? 0);
      const nextCursor = page + 1 < made.pages.length ? { nextCursor: String(page + 1) } : {};
      return { skills: made.pages[page], ttlMs: made.ttlMs, cacheScope: 'private', ...nextCursor };
    }
    if (method === 'skills/get') return { skill: made.pages.flat().find((each) => Object(each).uri === params.uri) };
    const content = files.get(String(params.uri)) ?? '';
    return {
      contents: [
        typeof content === 'string'
          ? { uri: params.uri, mimeType: 'text/markdown', text: content }
          : { uri: params.uri, blob: Buffer.from(content).toString('base64') },
      ],
    };
  };
  const http = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params = {} } = JSON.parse(text);
    if (id === undefined) return void response.writeHead(202).end();
    made.asked.push(method === 'resources/read' ? `read ${params.uri}` : method);
    const body = JSON.stringify({ jsonrpc: '2.0', id, result: resultOf(method, params) });
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const address = http.address();
  return Object.assign(made, { url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp` });
}

/** Runs a test with a hostile server and a client. */
async function attempt(
  work: (client: Client, server: Hostile) => Promise<void>,
  options: ConnectOptions = {},
  prepare: (server: Hostile) => void = () => {},
): Promise<void> {
  const server = await hostile();
  prepare(server);
  const client = await connect(server.url, { eras: 'modern', log() {}, ...options });
  server.asked.length = 0;
  try {
    await work(client, server);
  } finally {
    await client.close();
    server.close();
  }
}

async function refusal(promise: Promise<unknown>, reason: string): Promise<string> {
  try {
    await promise;
  } catch (error) {
    assert.instance(error, ClientError);
    if (!(error instanceof ClientError)) throw error;
    assert.is(error.reason, reason, error.message);
    return error.message;
  }
  throw new Error('expected a ClientError, got a result');
}

for (const eras of ['legacy', 'modern'] as const)
  test(`a ${eras} client lists all pages, and reads no file before the skill is loaded`, async () => {
    const other = { ...ENTRY, uri: 'skill://x/SKILL.md', frontmatter: { name: 'x', description: 'X' } };
    const second = { ...other, resources: [listed('skill://x/SKILL.md', '')] };
    await attempt(
      async (client, server) => {
        const skills = await client.skills();
        assert.equal(
          skills.map(({ uri }) => uri),
          [MANIFEST, 'skill://x/SKILL.md'],
        );
        assert.equal(skills[0], ENTRY);
        assert.equal(server.asked, ['skills/list', 'skills/list']);
        const skill = await client.skill(ENTRY);
        assert.equal(server.asked.slice(2), [`read ${MANIFEST}`]);
        assert.is(skill.name, 'pdf-processing');
        assert.is(skill.description, FRONTMATTER.description);
        assert.equal(skill.frontmatter, FRONTMATTER);
        assert.is(skill.instructions, '# PDF\n\nSee [forms](references/FORMS.md).\n');
        const forms = await skill.read('references/FORMS.md');
        assert.is(forms.text, 'Forms.\n');
        assert.is(forms.path, 'references/FORMS.md');
        assert.ok(forms.verified);
        const logo = await skill.read(LOGO);
        assert.equal(Buffer.from(logo.bytes), BINARY);
        assert.is(logo.text, undefined);
        assert.equal(server.asked.slice(3), [`read ${FORMS}`, `read ${LOGO}`]);
      },
      { eras },
      (server) => {
        server.pages = [[ENTRY], [second]];
      },
    );
  });

test('the list is cached for its time to live', async () => {
  const clock = new SimulatedClock();
  await attempt(
    async (client, server) => {
      await client.skills();
      await client.skills();
      await client.skill(MANIFEST);
      assert.equal(server.asked, ['skills/list', `read ${MANIFEST}`]);
      await clock.advance(60_001);
      await client.skills();
      assert.is(server.asked.filter((method) => method === 'skills/list').length, 2);
      await client.skills({ fresh: true });
      assert.is(server.asked.filter((method) => method === 'skills/list').length, 3);
    },
    { clock },
    (server) => {
      server.ttlMs = 60_000;
    },
  );
});

test('U-21 a file of another size or digest is refused, and named with both', () =>
  attempt(async (client, server) => {
    server.files.set(MANIFEST, `${TEXT}more`);
    const size = Buffer.byteLength(TEXT);
    assert.match(
      await refusal(client.skill(ENTRY), 'malformed'),
      `expected ${size} bytes as the skill's entry lists, got ${size + 4}`,
    );
    const evil = TEXT.replace('See', 'Eat');
    server.files.set(MANIFEST, evil);
    const message = await refusal(client.skill(ENTRY), 'malformed');
    assert.match(message, `expected the digest ${digestOf(TEXT)}`);
    assert.match(message, `got ${digestOf(evil)}`);
    server.files.set(MANIFEST, TEXT);
    const skill = await client.skill(ENTRY);
    server.files.set(FORMS, 'Farms.\n');
    await refusal(skill.read('references/FORMS.md'), 'malformed');
    // The same bytes as a blob are the same file.
    server.files.set(FORMS, Buffer.from('Forms.\n'));
    assert.is((await skill.read('references/FORMS.md')).text, 'Forms.\n');
  }));

const CHANGED: readonly (readonly [what: string, from: string, to: string, says: RegExp])[] = [
  ['text', 'Extract, fill', 'Exfiltrate, fill', /description: the entry has string "Extract/],
  ['name', 'name: pdf-processing', 'name: other', /name: the entry has string "pdf-processing"/],
  [
    'added field',
    'allowed-tools:',
    'hooks: rm\nallowed-tools:',
    /hooks: the entry has nothing, SKILL\.md has string "rm"/,
  ],
  ['removed field', 'metadata: { version: "1.0", since: 2026-01-31 }\n', '', /metadata: the entry has object/],
  ['nested field', 'since: 2026-01-31', 'since: 2026-02-01', /metadata\.since: /],
  ['type', '"1.0"', '1.0', /metadata\.version: the entry has string "1\.0", SKILL\.md has number 1/],
  ['order of a list', '- Read\n  - Write', '- Write\n  - Read', /allowed-tools\[0\]: /],
  ['length of a list', '  - Write\n', '  - Write\n  - Bash\n', /allowed-tools: the entry has array of 2/],
  ['list for text', 'name: pdf-processing', 'name: [pdf-processing]', /name: .* SKILL\.md has array of 1/],
  ['__proto__', 'allowed-tools:', '__proto__: { polluted: true }\nallowed-tools:', /__proto__: the entry has nothing/],
];

for (const [what, from, to, says] of CHANGED)
  test(`U-22 a frontmatter with another ${what} is refused, and the field is named`, () =>
    attempt(async (client, server) => {
      assert.ok(TEXT.includes(from));
      const changed = TEXT.replace(from, to);
      server.files.set(MANIFEST, changed);
      const entry = { ...ENTRY, resources: [listed(MANIFEST, changed), listed(FORMS, 'Forms.\n')] };
      assert.match(await refusal(client.skill(entry), 'malformed'), says);
      assert.equal(server.asked, [`read ${MANIFEST}`]);
      assert.is(Object('').polluted, undefined);
    }));

const bomb = Array.from({ length: 12 }, (_, at) =>
  at === 0 ? 'a0: &a0 [x,x,x,x,x,x,x,x]' : `a${at}: &a${at} [${`*a${at - 1},`.repeat(8).slice(0, -1)}]`,
).join('\n');
const UNREADABLE: readonly (readonly [what: string, text: string])[] = [
  ['no frontmatter', '# PDF\n'],
  ['no end', '---\nname: pdf-processing\n'],
  ['no YAML', '---\nname: [pdf\n---\n'],
  ['a key twice', '---\nname: pdf-processing\nname: other\n---\n'],
  ['a tag', '---\nname: !!js/function "x"\n---\n'],
  ['an alias bomb', `---\n${bomb}\n---\n`],
  ['a circle', '---\nname: &a [*a]\n---\n'],
  ['deep nesting', `---\nname: ${'['.repeat(30_000)}\n---\n`],
  ['a long text', `---\nname: ${'x'.repeat(70_000)}\n---\n`],
  ['a list', '---\n- name\n---\n'],
];
for (const [what, text] of UNREADABLE)
  test(`a SKILL.md with ${what} is refused as malformed`, () =>
    attempt(async (client, server) => {
      server.files.set(MANIFEST, text);
      await refusal(client.skill({ ...ENTRY, resources: [listed(MANIFEST, text)] }), 'malformed');
    }));

test('a SKILL.md that is no UTF-8 is refused', () =>
  attempt(async (client, server) => {
    server.files.set(MANIFEST, BINARY);
    const entry = { ...ENTRY, resources: [listed(MANIFEST, BINARY)] };
    assert.match(await refusal(client.skill(entry), 'malformed'), /UTF-8/);
  }));

test('a frontmatter between CRLF lines and after a byte order mark is read', () =>
  attempt(async (client, server) => {
    const text = `\uFEFF${TEXT.replaceAll('\n', '\r\n')}`;
    server.files.set(MANIFEST, text);
    const skill = await client.skill({ ...ENTRY, resources: [listed(MANIFEST, text)] });
    assert.is(skill.name, 'pdf-processing');
  }));

const BAD_ENTRIES: readonly (readonly [what: string, entry: unknown, says: RegExp])[] = [
  ['no object', 7, /expected an entry with a uri/],
  ['another file name', { ...ENTRY, uri: `${ROOT}/README.md` }, /address of a SKILL\.md/],
  ['no frontmatter', { ...ENTRY, frontmatter: null }, /frontmatter: expected an object/],
  ['a name in capitals', { ...ENTRY, frontmatter: { ...FRONTMATTER, name: 'PDF' } }, /frontmatter\.name/],
  ['the name of another folder', { ...ENTRY, frontmatter: { ...FRONTMATTER, name: 'other' } }, /name of the folder/],
  ['no description', { ...ENTRY, frontmatter: { name: 'pdf-processing' } }, /frontmatter\.description/],
  ['no files', { ...ENTRY, resources: [] }, /SKILL\.md among the files/],
  ['a file twice', { ...ENTRY, resources: [listed(MANIFEST, ''), listed(MANIFEST, '')] }, /listed twice/],
  ['a file elsewhere', { ...ENTRY, resources: [listed('file:///etc/passwd', '')] }, /not in the skill's folder/],
  ['the folder itself', { ...ENTRY, resources: [listed(`${ROOT}/./x`, '')] }, /not in the skill's folder/],
  ['an empty segment', { ...ENTRY, resources: [listed(`${ROOT}//x`, '')] }, /not in the skill's folder/],
  ['a file above', { ...ENTRY, resources: [listed(`${ROOT}/%2e%2e/x`, '')] }, /not in the skill's folder/],
  ['a short digest', { ...ENTRY, resources: [{ uri: MANIFEST, digest: 'sha256:0', size: 1 }] }, /digest: expected/],
  ['a negative size', { ...ENTRY, resources: [{ ...listed(MANIFEST, ''), size: -1 }] }, /size: expected/],
];
for (const [what, entry, says] of BAD_ENTRIES)
  test(`an entry with ${what} is left out with a warning, and does not hide the others`, async () => {
    const warnings: string[] = [];
    await attempt(
      async (client) => {
        assert.equal(await client.skills(), [ENTRY]);
        assert.is(warnings.length, 1);
        assert.match(warnings[0] ?? '', says);
        if (typeof entry === 'object')
          assert.match(await refusal(client.skill(entry as SkillEntry), 'malformed'), says);
      },
      { log: (level, message) => void (level === 'warning' && warnings.push(message)) },
      (server) => {
        server.pages = [[entry, ENTRY]];
      },
    );
  });

test('a skill above maxSkillFiles or maxSkillBytes is left out, and the option is named', async () => {
  for (const option of ['maxSkillFiles', 'maxSkillBytes']) {
    const warnings: string[] = [];
    await attempt(
      async (client) => {
        assert.equal(await client.skills(), []);
        assert.match(warnings[0] ?? '', `The option is ${option}`);
      },
      { [option]: 2, log: (_level, message) => void warnings.push(message) },
    );
  }
});

test('a file longer than maxMessageBytes is refused before it is requested', () =>
  attempt(
    async (client, server) => {
      const big = { ...listed(FORMS, ''), size: 70_000 };
      const skill = await client.skill({ ...ENTRY, resources: [listed(MANIFEST, TEXT), big] });
      assert.match(await refusal(skill.read('references/FORMS.md'), 'too long'), /maxMessageBytes/);
      assert.equal(server.asked, [`read ${MANIFEST}`]);
    },
    { maxMessageBytes: 65_536 },
  ));

test('a file that the skill does not list is refused without a request', () =>
  attempt(async (client, server) => {
    const skill = await client.skill(ENTRY);
    for (const path of ['references/OTHER.md', '../../other/SKILL.md', 'file:///etc/passwd', '', 'references/..'])
      assert.match(await refusal(skill.read(path), 'refused'), /lists SKILL\.md, references\/FORMS\.md/);
    assert.equal(server.asked, [`read ${MANIFEST}`]);
  }));

test('a file is found by its name in either spelling', async () => {
  const uri = `${ROOT}/a%20b.md`;
  await attempt(async (client, server) => {
    server.files.set(uri, 'ab');
    const skill = await client.skill({ ...ENTRY, resources: [listed(MANIFEST, TEXT), listed(uri, 'ab')] });
    assert.is((await skill.read('a b.md')).uri, uri);
    assert.is((await skill.read('./a%20b.md')).uri, uri);
  });
});

test('the files of a dynamic skill are read without verification, and only below its folder', () =>
  attempt(async (client, server) => {
    const skill = await client.skill({ ...ENTRY, resources: 'dynamic' });
    assert.is(skill.files, 'dynamic');
    assert.is((await skill.read('references/FORMS.md')).verified, false);
    const before = server.asked.length;
    for (const path of ['../x', '%2e%2e/x', 'a//b', 'a?b', 'a%2f..%2fb']) await refusal(skill.read(path), 'refused');
    assert.is(server.asked.length, before);
    server.files.set(MANIFEST, TEXT.replace('Extract', 'Exfiltrate'));
    await refusal(client.skill({ ...ENTRY, resources: 'dynamic' }), 'malformed');
  }));

test('contents of another file, of two files and of none are refused', () =>
  attempt(async (client, server) => {
    const content = { uri: MANIFEST, text: TEXT };
    for (const contents of [[{ ...content, uri: FORMS }], [content, content], [], [{ uri: MANIFEST }]]) {
      server.results.set('resources/read', { contents });
      await refusal(client.skill(ENTRY), 'malformed');
    }
  }));

test('an address is asked for by skills/get, and the entry of another skill is refused', () =>
  attempt(async (client, server) => {
    assert.is((await client.skill(MANIFEST)).name, 'pdf-processing');
    assert.equal(server.asked, ['skills/get', `read ${MANIFEST}`]);
    server.results.set('skills/get', { skill: { ...ENTRY, uri: 'skill://x/SKILL.md' } });
    assert.match(await refusal(client.skill(MANIFEST), 'malformed'), /skills\/get: expected the entry of/);
  }));

test('a server without the extension has no skills, and is not asked', () =>
  attempt(
    async (client, server) => {
      assert.equal(await client.skills(), []);
      assert.match(await refusal(client.skill(MANIFEST), 'refused'), /has no skills/);
      assert.equal(server.asked, []);
    },
    {},
    (server) => {
      server.extension = false;
    },
  ));

test('every frontmatter that YAML writes is equal to itself when it is read', () =>
  attempt(async (client, server) => {
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.string({ unit: character }),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.constantFrom('yes', '2026-01-31', '0x10', '1e3', '~', '.inf', '- a', 'a: b', '#x'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.string({ minLength: 1 }), tie('value'), { maxKeys: 3 }),
      ),
    })).value;
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.stringMatching(/^x[a-z-]{1,8}$/), value, { maxKeys: 4 }), async (more) => {
        const plain: Record<string, unknown> = JSON.parse(JSON.stringify(more));
        const frontmatter = { name: 'pdf-processing', description: 'd', ...plain };
        const text = `---\n${stringify(frontmatter, { version: '1.2', schema: 'core' })}---\nbody`;
        // A line "---" inside of a text ends the frontmatter for every reader.
        fc.pre(!/^---[ \t]*\r?$/m.test(text.slice(4, -8)) && Buffer.from(text).toString() === text);
        server.files.set(MANIFEST, text);
        const entry = { uri: MANIFEST, frontmatter, resources: [listed(MANIFEST, text)] } as unknown as SkillEntry;
        assert.is((await client.skill(entry)).instructions, 'body');
      }),
      { numRuns: random(40) },
    );
  }));
