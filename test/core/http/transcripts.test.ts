/** Plays every transcript of `test/core/http/transcripts` over `http()` and mounted, in each revision that its folder is for. */
import { readdirSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { isObject, type JsonValue } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { LATEST_MODERN, type Revision } from '../../../src/core/protocol/revisions.ts';
import { ErrorCode, type Limits, ProtocolError, type Server, SUPPORTED_REVISIONS } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { wireChecker } from '../../harness/wire.ts';
import { playHttp } from './http-player.ts';
import { readHttpTranscript } from './http-transcript.ts';
import { SELF } from './modern.ts';
import { type Kind, type Mounted, Served } from './served.ts';
import { LEGACY } from './session.ts';

const KINDS: readonly Kind[] = ['http', 'node', 'fetch'];
const FOLDER = new URL('transcripts/', import.meta.url);

/** The revisions that the transcripts of a folder are played in. */
const FOLDERS: Readonly<Record<string, readonly Revision[]>> = {
  legacy: LEGACY,
  '2024-11-05': ['2024-11-05'],
  '2025-03-26': ['2025-03-26'],
  '2025-11-25': ['2025-11-25'],
  'until-2025-06-18': ['2024-11-05', '2025-03-26', '2025-06-18'],
  'without-batches': ['2024-11-05', '2025-06-18', '2025-11-25'],
  modern: [LATEST_MODERN],
};

/** The options and limits of a server, where they are not the default ones. By the name of the transcript. */
const OPTIONS: Readonly<Record<string, readonly [Mounted, Partial<Limits>?]>> = {
  'pinned-to-json': [{ response: 'json', keepAliveMs: 1_000 }],
  'pinned-to-a-stream': [{ response: 'sse' }],
  'kept-alive': [{ keepAliveMs: 1_000 }],
  'json-takes-its-time': [{ keepAliveMs: 1_000 }],
  'first-event': [{ retryMs: 777 }],
  'too-many-sessions': [{}, { maxSessions: 1 }],
  'refused-initialize': [{}, { maxSessions: 1 }],
  'batch-limit': [{}, { maxBatch: 3 }],
  expired: [{ sessionIdleMs: 60_000 }],
};

/**
 * The tools of a cast: `hold {key}` reports progress once to whoever wants it, and runs until another call `release`s it, `said` is
 * answered once it runs. `change {uri}` tells of a resource that has changed.
 */
function cast(server: Server): void {
  const running = new Map<string, (text: string) => void>();
  const waiting = new Map<string, () => void>();
  const byKey = { input: z.object({ key: z.string() }) };
  server.tool('hold', byKey, ({ key }, { progress }) => {
    progress(1);
    return new Promise<string>((finish) => {
      running.set(key, finish);
      waiting.get(key)?.();
    });
  });
  const held = (key: string): Promise<void> =>
    running.has(key) ? Promise.resolve() : new Promise((resolve) => waiting.set(key, resolve));
  server.tool('held', byKey, async ({ key }) => {
    await held(key);
    return 'it runs';
  });
  server.tool('release', byKey, async ({ key }) => {
    await held(key);
    running.get(key)?.(`released ${key}`);
    return 'it ends';
  });
  server.tool('change', { input: z.object({ uri: z.string() }) }, ({ uri }) => {
    server.resourceUpdated(uri);
    return 'it has changed';
  });
  server.tool('say', { input: z.object({ lines: z.number() }) }, ({ lines }, { log }) => {
    for (let line = 1; line <= lines; line += 1) log.info(`line ${line}`);
    return `said ${lines}`;
  });
  server.tool('whoami', {}, (_args, { principal, client: { revision } }) => `${principal} ${revision}`);
  server.tool('fail', {}, () => {
    throw new Error('it failed');
  });
  server.tool('needs_sampling', {}, () => {
    throw new ProtocolError(ErrorCode.MissingRequiredClientCapability, 'needs sampling', {
      requiredCapabilities: { sampling: {} },
    });
  });
  server.resource('notes://a', {}, () => 'note a');
  server.resource('notes://b', {}, () => 'note b');
  server.prompt('hello', {}, () => 'hello');
}

function isQuick(kind: Kind, revision: Revision, revisions: readonly Revision[]): boolean {
  const isLast = revision === revisions.at(-1);
  return kind === 'fetch' ? isLast || revision === revisions[0] : kind === 'http' && isLast;
}

const VALUES: Readonly<Record<string, JsonValue>> = {
  meta: SELF,
  // With a token by which progress is reported.
  following: { ...SELF, progressToken: 'p' },
  logging: { ...SELF, [META.logLevel]: 'info' },
  modern: LATEST_MODERN,
  supported: [...SUPPORTED_REVISIONS],
  client: { name: 'test', version: '1.0.0' },
};

for (const [folder, revisions] of Object.entries(FOLDERS))
  for (const revision of revisions) {
    const test = suite(folder === revision ? `HTTP ${revision}` : `HTTP ${revision} (${folder})`);
    for (const file of readdirSync(new URL(`${folder}/`, FOLDER)).sort()) {
      const text = readFileSync(new URL(`${folder}/${file}`, FOLDER), 'utf8');
      const topic = file.replace(/\.txt$/, '');
      // A quick run has each transcript over sockets once, and without them in the first and the last revision.
      for (const kind of KINDS)
        (isQuick(kind, revision, revisions) ? test : test.full)(
          `${topic}, ${kind}: ${readHttpTranscript(text).why}`,
          async () => {
            const [options, limits = {}] = OPTIONS[topic] ?? [{}];
            const served = await Served.open(kind, options, limits, cast);
            const check = wireChecker(revision);
            try {
              await playHttp(text, {
                fetch: served.fetch,
                clock: served.clock,
                values: { ...VALUES, revision, who: `anonymous ${revision}` },
                onMessage(direction, message, status = 200) {
                  if (status >= 400 && isWithoutId(message) && revision < '2025-11-25') return;
                  check(direction, message);
                },
              });
            } finally {
              await served.close();
            }
          },
        );
    }
  }

/**
 * The body of an HTTP error may be an error without an id (2025-03-26 basic/transports, "Sending Messages to the Server"), for which
 * the schemas have no type before 2025-11-25.
 */
function isWithoutId(message: string): boolean {
  const value: unknown = JSON.parse(message);
  return isObject(value) && 'error' in value && !('id' in value);
}

const whole = suite('the HTTP transcripts');

whole('every folder has its revisions, and no other folder is there', () => {
  const folders = readdirSync(FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  assert.equal(folders.sort(), Object.keys(FOLDERS).sort());
});

whole('every option belongs to a transcript', () => {
  const topics = Object.keys(FOLDERS).flatMap((folder) => readdirSync(new URL(`${folder}/`, FOLDER)));
  for (const topic of Object.keys(OPTIONS)) assert.ok(topics.includes(`${topic}.txt`), topic);
});

whole('a step that fails names its line, what was expected and what came', async () => {
  const served = await Served.open('fetch', {}, {}, cast);
  const played = (text: string): Promise<unknown> =>
    playHttp(`It is wrong.\n${text}`, {
      fetch: served.fetch,
      clock: served.clock,
      values: VALUES,
      onMessage() {},
    }).then(
      () => undefined,
      (error: Error) => error.message,
    );
  const ping = '→ POST\n  {"jsonrpc":"2.0","id":1,"method":"ping"}\n';
  const cases: readonly (readonly [text: string, problem: RegExp])[] = [
    [`${ping}← 200`, /^transcript line 4: expected 200, got 400: \{/],
    [`${ping}← 400`, /^transcript line 4: expected no content, got \{/],
    [`${ping}← 400\n  allow: POST\n  {"…":"…"}`, /^transcript line 4: allow: expected "POST", got nothing/],
    [
      `${ping}← 400\n  content-type: ∅\n  {"…":"…"}`,
      /^transcript line 4: content-type: expected none, got application\/json/,
    ],
    [`${ping}← 400\n  {"jsonrpc":"1.0","…":"…"}`, /^transcript line 4: jsonrpc: expected "1.0", got "2.0"/],
    [`${ping}← event\n  {}`, /^transcript line 4: the answer to "" is no event stream/],
    ['← a: 200', /^transcript line 2: no request was sent as "a"/],
    ['→ post', /^transcript line 2: expected a method after →; got "post"/],
    ['← 20', /^transcript line 2: expected a status, "event", "comment" or "end" after ←; got "20"/],
    ['→ POST\n  {"a"', /^transcript line 2: expected JSON, or lines that begin with \|/],
  ];
  for (const [text, problem] of cases) assert.match(String(await played(text)), problem, text);
  await served.close();
});
