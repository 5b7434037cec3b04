/**
 * Every option of the package: what it takes, what it refuses, and in which words. `options.test.ts` checks the table, and that it
 * has each option and each function with options.
 */
import { createMachine } from 'xstate';
import { CallbackSubscription } from '../../../src/client/callback-subscription.ts';
import { oauth as signIn } from '../../../src/client/client.ts';
import {
  type CallOptions,
  checkCallOptions,
  checkList,
  checkTarget,
  type ListOptions,
} from '../../../src/client/client-options.ts';
import { fileTokens } from '../../../src/client/oauth/file-tokens.ts';
import { clientOn } from '../../../src/client/open-client.ts';
import { DEFAULT_LIMITS, resolveLimits } from '../../../src/core/kernel/limits.ts';
import { readRequest } from '../../../src/features/approvals/approval-policy.ts';
import { checkClusterOptions } from '../../../src/features/cluster/cluster-options.ts';
import { AUDIT_EVENTS } from '../../../src/features/guard/audit/audit-record.ts';
import { oauth } from '../../../src/features/oauth/oauth.ts';
import { checkSkillsOptions } from '../../../src/features/skills/skills-options.ts';
import { otel } from '../../../src/features/telemetry/otel.ts';
import { readMountOptions } from '../../../src/gateway/mounts/mount-options.ts';
import { OfferedNames } from '../../../src/gateway/mounts/names.ts';
import { createServer, http, memoryStore, openapi, postgres, socket, sqlite, stdio } from '../../../src/index.ts';
import { openInspector } from '../../../src/inspector/inspector.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { github, hmac, receiver, slack, standardWebhooks, stripe } from '../../../src/webhooks.ts';

/** One option. */
export interface Row {
  /** What it expects, in the words of its refusal: `NAME: expected WORDS, got VALUE`. */
  readonly expects: string;
  /** Values that it takes. It refuses each other one of {@link HOSTILE}. */
  readonly takes: readonly unknown[];
  /** More values that it refuses. */
  readonly refuses: readonly unknown[];
  /** No refusal contains the value. */
  readonly secret?: true;
  /** Other options, with which it is read. */
  readonly beside?: object;
}

/** The options of one function. */
export interface Options {
  /** The beginning of each refusal. */
  readonly where: string;
  /** Reads options. It throws, or returns a promise that rejects. */
  read(given: unknown): unknown;
  /** Options without which none is read. */
  readonly base?: object;
  /** Other members may exist: a definition may be an object of a class. */
  readonly open?: true;
  readonly rows: Readonly<Record<string, Row>>;
  /** Options that are refused in other words, which follow `where`. */
  readonly refused?: readonly (readonly [given: object, words: string])[];
}

export const FUNCTION = (): string => '<!doctype html><p>x';
/** Values that careless or untyped programs pass. */
export const HOSTILE: readonly unknown[] = [
  ...[Number.NaN, -1, Number.POSITIVE_INFINITY, 1.5, 10n, '10', '', true, null, [], {}],
  ...[FUNCTION, Symbol('s')],
];

const LONGEST_MS = 2 ** 31 - 1;
const YEARS_MS = 3_155_760_000_000;

const row = (expects: string, takes: readonly unknown[] = [], refuses: readonly unknown[] = []): Row => ({
  ...{ expects, takes, refuses },
});
/** @param expects how the refusal begins, because its end shows nothing of the value */
const secret = (...args: Parameters<typeof row>): Row => ({ ...row(...args), secret: true });
const each = (names: readonly string[], same: Row) => Object.fromEntries(names.map((name) => [name, same]));
const between = (unit: string, least: number, most: number, more = ''): Row =>
  row(`${unit} from ${least} to ${most}${more}`, [least, most], [least - 1, most + 1]);
const whole = (least: number, most: number): Row => between('a whole number', least, most);
const from = (least: number): Row =>
  row(`a whole number of at least ${least}`, [least, Number.MAX_SAFE_INTEGER], [least - 1, 2 ** 53]);
const count = from(1);
const time = between('whole milliseconds', 1, LONGEST_MS);
const delay = row('whole milliseconds, at least 0', [0, LONGEST_MS]);
const life = between('whole milliseconds', 1, YEARS_MS, ' (100 years)');
const flag = row('true or false', [true, false]);
const text = row('a string', ['10', '']);
const filled = row('a string that is not empty', ['10']);
const functional = row('a function', [FUNCTION]);
const strings = row('a list of strings', [[], ['a']], [[1]]);
const object = row('an object', [{}]);
const icons = row('a list of icons', [[]]);
const clock = row('a clock with now(), date(), after(), hold() and soon()', [new SimulatedClock()]);
const log = functional;
const scopes = row('an array of scopes, such as ["orders:read"]', [[], ['a']], ['orders:read']);
const principal = row('the name of a user, such as "ada"', ['10', 'ada']);
const NOBODY: Options['refused'] = [[{ principal: 'anonymous' }, 'principal: expected the name of a user, such as']];
const rate = row('{ perSecond, burst }', [{ perSecond: 0.1, burst: 1 }], [5]);
const address = row(
  'an https address, or an http address of this machine',
  ['https://a.example'],
  ['http://a.example'],
);
/** Another check reads it, where it is used. */
const elsewhere = row('', HOSTILE);

function oneOf(...names: readonly string[]): Row {
  const words = names.map((name) => `"${name}"`);
  return row(`${words.slice(0, -1).join(', ')} or ${words.at(-1)}`, names, [names, `${names[0]} `]);
}

type Body = (...args: never[]) => unknown;
/** The reader of options that are the last argument of a function. */
const of = (where: string, body: Body, ...args: readonly unknown[]): Pick<Options, 'where' | 'read'> => ({
  where,
  read: (given) => Reflect.apply(body, undefined, [...args, given]),
});
/** The same for those that are one of its options. */
const within = (where: string, body: Body, member: string, base: object = {}): Pick<Options, 'where' | 'read'> => ({
  where,
  read: (given) => Reflect.apply(body, undefined, [{ ...base, [member]: given }]),
});

const INFO = { name: 's', version: '1', log: () => {} };
const MACHINE = createMachine({ initial: 'on', states: { on: { on: { pay: {} } } } });

/** The server that has registered nothing so far: what is refused leaves nothing behind. */
let empty = createServer(INFO);
type Registers = 'app' | 'event' | 'machine' | 'prompt' | 'resource' | 'schedule' | 'tool' | 'webhook';
/** The same for a method of such a server. */
const registered = (where: string, method: Registers, name: string, ...rest: readonly unknown[]) => ({
  where,
  read(given: unknown): void {
    const args = method === 'machine' ? [name, MACHINE, given] : [name, given, ...rest];
    Reflect.apply(empty[method], empty, args);
    empty = createServer(INFO);
  },
});
const ofTool = (where: string, member: string): Pick<Options, 'where' | 'read'> => ({
  where,
  read: (given) => registered(where, 'tool', 't', FUNCTION).read({ [member]: given }),
});

const SECRET = 'long enough to be a secret';
const STANDARD = Buffer.alloc(32, 'x').toString('base64');
const WHSEC = `whsec_${STANDARD}`;
const RESOURCE = 'https://mcp.example.com/mcp';
const ISSUER = 'https://login.example.com';

const DESCRIBED = {
  ...{ scopes, allow: functional, icons, meta: object },
  ...each(['title', 'description'], text),
};
const OF_TOOLS = each(['limits', 'approve'], secret('it on a tool; other elements have scopes and allow'));
const HOOK_SECRET = secret('a secret as a string', [SECRET, [SECRET]], [undefined]);
const WRONG_SECRETS: Options['refused'] = [
  ...['', '10', 'hunter2'].map(
    (short) => [{ secret: short }, `secret: expected at least 8 characters, got ${short.length}`] as const,
  ),
  [{ secret: 'a secret with a line break\n' }, 'secret: expected a secret without spaces or line breaks around it'],
  [{ secret: [] }, 'secret: expected 1 to 8 secrets, got 0'],
  [{ secret: [SECRET, ''] }, 'secret: expected at least 8 characters, got 0'],
];
const APPROVERS = '"caller", { scope }, { claim: [name, value] } or { principals: [ … ] }, or a list of them';
const ASKING = {
  by: row(APPROVERS, ['caller'], [{ principals: ['anonymous'] }, 'ops']),
  quorum: whole(1, 20),
  ...each(['self', 'recheck'], flag),
  expiresMs: between('milliseconds', 1, 604_800_000, ' (7 days)'),
  message: row('a string of 1 to 1000 characters', ['10'], ['x'.repeat(1_001)]),
};

/** Names of other packages, and misspelled ones: a guard that is misspelled guards nothing. */
const MISNAMED: Options['refused'] = [
  ...Object.entries({ inputs: 'input', inputSchema: 'input', scope: 'scopes', allows: 'allow', mimetype: 'mimeType' }),
  ...Object.entries({ authorize: 'allow', limit: 'limits', desciption: '' }),
].map(([name, ours]) => [
  { [name]: 1 },
  `${name}: ${ours ? `this member is called "${ours}" here` : 'no such option (did you'}`,
]);

/** Approvals of the tools of a mount, and what the error says after `approve`. */
const WRONG_APPROVALS: Options['refused'] = (
  [
    ['', ': expected a string that is not empty, got string ""'],
    [
      7,
      ': expected a pattern of names, or an object such as { "tools": ["*_refund"], "by": { "scope": "ops" } }, got 7'.slice(
        0,
        -1,
      ),
    ],
    [{}, ': expected tools or destructive, got none. Write "tools": ["*"] for all tools of the server'],
    [{ tools: [] }, '.tools: expected a list of names or patterns, such as ["delete_*"], got array of 0'],
    [{ destructive: false }, '.destructive: expected true, got boolean false'],
    [
      { destructive: true, quorom: 2 },
      '.quorom: no such option; there are tools, destructive, when, expires, by, quorum',
    ],
    [{ destructive: true, expiresMs: 1 }, '.expiresMs: no such option; expected expires, such as "1h"'],
    ...['1 h', '0s', '8d', 60, '1y', ''].map((expires) => [
      { destructive: true, expires },
      '.expires: expected a time such as "90s"',
    ]),
    [
      { destructive: true, remember: { for: '31d' } },
      '.remember: for: expected "session", or a time such as "1h", at most 30d',
    ],
    [{ destructive: true, quorum: 2 }, '.quorum: expected 1 for { by: "caller" }, who is one, got number 2'],
    [{ destructive: true, by: 'ops' }, `.by: expected ${APPROVERS}, got string "ops"`],
    [{ destructive: true, when: {} }, '.when: expected 1 to 20 conditions, got 0'],
    [{ destructive: true, when: { a: {} } }, '.when: "a": expected min, max, in or present, got none'],
    [{ destructive: true, when: { a: { min: 2, max: 1 } } }, '.when: "a": expected min of at most max, got 2 and 1'],
    [{ destructive: true, when: { a: { present: false, min: 1 } } }, '.when: "a": expected present: false alone'],
    [{ destructive: true, when: { a: { min: '1' } } }, '.when: "a": min: expected a number, got string "1"'],
    [
      { destructive: true, when: { a: { matches: 'x' } } },
      '.when: "a": matches: no such option; there are min, max, in',
    ],
    [
      { destructive: true, when: { '/a~2': 1 } },
      '.when: expected a JSON Pointer, in which "~" is "~0" and "/" is "~1"',
    ],
  ] as const
).map(([entry, words]) => [{ approve: [entry] }, `approve[0]${words}`]);

const LIVES = ['handleTtlMs', 'handleIdleMs', 'handleAnonymousTtlMs', 'handleRememberMs', 'replyTtlMs', 'stateIdleMs'];
const STORE = {
  ...each(['maxStreamEvents', 'maxActorBytes', 'maxActorStreams', 'maxActorReplies', 'maxReplies'], count),
  ...each(['maxDeadLetters', 'maxWaiting', 'maxWaitingLength', 'maxGroupWrites', 'maxGroupLength'], count),
  ...each(['lockMs', 'answerMs'], time),
};

/** By the types of the options, whose rows `src` has. */
export const OPTIONS: Readonly<Record<string, Options>> = {
  CoreOptions: {
    ...of('createServer: ', createServer),
    base: INFO,
    rows: {
      name: row('a string that is not empty', ['10'], [undefined]),
      version: row('a string such as "1.0.0"', ['10'], [undefined]),
      ...each(['title', 'description', 'websiteUrl', 'instructions'], text),
      ...each(['executors', 'experimental', 'extensions', 'limits', 'http'], object),
      ...{ icons, log, clock },
      listTtlMs: delay,
      askThroughModel: flag,
      afterLateError: oneOf('serve', 'restart'),
      errors: oneOf('message', 'masked'),
      tools: row('a list of elements of defineTool(…)', [[]], [[1]]),
      resources: row('a list of elements of defineResource(…)', [[]], [[1]]),
      prompts: row('a list of elements of definePrompt(…)', [[]], [[1]]),
      machines: row('a list of machines of defineMachine(…)', [[]], [[1]]),
      telemetry: row('a tracing system such as otel()', [otel()]),
      offers: row('a list of tools, resources, prompts, completions', [[], ['tools']], [['tool']]),
      keys: secret('a list of secrets', [['s'.repeat(32)]]),
      store: row('a store, such as sqlite(path)', [memoryStore()]),
      features: row('a list of features, each with a name and open(core)', [[]], [[1], [{ name: 'x' }]]),
      cluster: row('{ listen, secret }'),
      watchdog: row('true, false or { softMs, hardMs, record }', [true, false, {}]),
      audit: row("an object such as { to: 'audit.jsonl' }"),
      events: row('options such as { callbacks: false }', [{}]),
      onApproval: functional,
      code: row('an object such as { effects: "approve", threads: 2 }', [{}]),
    },
    refused: [
      [{ icons: [{}] }, 'icons: expected each icon to be an object with a string "src"'],
      [
        { cluster: { listen: 'a:7400', secret: SECRET.repeat(2) } },
        'cluster: expected a store that several processes share',
      ],
      [{ events: { codes: 'both' } }, 'events: codes: expected "auto", "sep" or "sketch"'],
      [{ events: { callbacks: true } }, 'events: callbacks: expected false, or options such as { local: true }'],
      [{ events: { callbacks: { allow: ['*'] } } }, 'events: callbacks: allow: expected origins such as'],
      [{ events: { callbacks: { local: 1 } } }, 'events: callbacks: local: expected true or false, got number 1'],
      [{ events: { callbacks: { noExpiry: 1 } } }, 'events: callbacks: noExpiry: expected true or false, got number 1'],
      [{ code: { effects: 'no' } }, 'code: effects: expected "approve", "allow" or "deny"'],
      [{ code: { threads: 65 } }, 'code: threads: expected a whole number from 1 to 64'],
      [{ code: { waitMs: 0 } }, 'code: waitMs: expected whole milliseconds from 1'],
      [{ code: { sliceMs: 0 } }, 'code: sliceMs: expected whole milliseconds from 1'],
      [{ code: { runMs: 0 } }, 'code: runMs: expected whole milliseconds from 1'],
      [{ code: { memoryBytes: 0 } }, 'code: memoryBytes: expected a whole number of at least 1'],
    ],
  },
  Limits: {
    ...of('limits.', resolveLimits),
    rows: {
      ...Object.fromEntries(Object.keys(DEFAULT_LIMITS).map((name) => [name, name.endsWith('Ms') ? time : count])),
      ...each([...LIVES, 'stateSessionIdleMs', 'approvalKeptMs', 'webhookTtlMs', 'maxWebhookTtlMs'], life),
      anonymousPercent: whole(1, 100),
    },
  },
  AuditOptions: {
    ...within('createServer: audit.', createServer, 'audit', INFO),
    base: { to: FUNCTION },
    rows: {
      to: row("a function, the path of a file, or 'store'", ['10', FUNCTION], [undefined]),
      events: row(`a list of ${AUDIT_EVENTS.join(', ')}`, [[]]),
      required: flag,
      include: row("['arguments']", [[]], [['results']]),
      redact: functional,
    },
    refused: [
      [{ to: 'store' }, "to: 'store' needs a durable store"],
      [{ events: ['calls'] }, 'events: expected a list of denied, limited, call'],
      [{ include: ['arguments'] }, 'redact: expected a function'],
    ],
  },
  WatchdogOption: {
    ...within('createServer: watchdog.', createServer, 'watchdog', INFO),
    rows: {
      ...each(
        ['softMs', 'hardMs'],
        row('whole milliseconds of at least 100 (the loop is checked every 50)', [100], [99]),
      ),
      record: row('the path of a file', ['10', '']),
    },
  },
  ClusterOptions: {
    ...of('createServer: cluster.', checkClusterOptions),
    base: { listen: '10.0.0.5:7400', secret: 's'.repeat(32) },
    rows: {
      listen: row(
        'the address at which the other nodes reach this one, such as "10.0.0.5:7400"',
        ['10.0.0.5:7400', 'node-1:0', '[fd00::5]:7400', 'localhost:7400'],
        ['0.0.0.0:7400', '[::]:7400', '*:7400', '7400', ':7400', 'node-1', 'node-1:65536', undefined],
      ),
      secret: secret('a string'),
      spread: oneOf('principal', 'session'),
      tls: row('{ key, cert, ca } in PEM'),
    },
    refused: ['hunter2', '10', ''].map((short) => [
      { secret: short },
      `secret: expected at least 32 characters, got ${short.length}; use random ones`,
    ]),
  },
  HttpOptions: {
    ...of('http: ', http),
    rows: {
      port: whole(0, 65_535),
      host: row('an address such as "127.0.0.1"', ['127.0.0.1', '127.0.0.2', '::1', 'localhost']),
      path: row('a path such as "/mcp"', ['/mcp'], ['mcp', '/a b']),
      allowedHosts: { ...strings, takes: [[], ['mcp.example.com', 'b.example:8443']] },
      allowedOrigins: { ...strings, takes: [[], ['https://app.example.com']] },
      allowedHeaders: { ...strings, takes: [[], ['X-Api-Key']] },
      response: oneOf('auto', 'json', 'sse'),
      ...each(['retryMs', 'keepAliveMs', 'stallMs', 'idleConnectionMs', 'sessionIdleMs', 'replayMs'], time),
      ...each(['maxReplayEvents', 'maxReplayBytes', 'maxExchanges', 'maxExchangesPerPrincipal'], count),
      drainDelayMs: delay,
      ownsProcess: flag,
      metrics: row('{ port: 9464 }', [{ port: 0 }]),
      card: row('true, or { url, name, catalog }', [false]),
      signIn: row('{ url, identify }', [{}]),
      authenticate: functional,
      auth: row('an authenticator, such as oauth() of troupe/oauth', [], [{ authenticate: FUNCTION }]),
      rate,
    },
    refused: [
      ...['10', '0.0.0.0', '::', '192.168.1.5', 'mcp.example.com', 'localhost.attacker.com'].map(
        (host) => [{ host }, `host: ${host} is reachable from other machines`] as const,
      ),
      ...['*', 'https://mcp.example.com', '*.example.com', 'mcp.example.com/mcp'].map(
        (host) => [{ allowedHosts: [host] }, 'allowedHosts: expected a host name'] as const,
      ),
      ...['*', 'null', 'https://*.example.com', 'app.example.com', 'https://app.example.com/'].map(
        (origin) => [{ allowedOrigins: [origin] }, 'allowedOrigins: expected an origin'] as const,
      ),
      [{ allowedHeaders: ['X-*'] }, 'allowedHeaders: expected the name of a header'],
      [{ card: true }, 'card: expected the address of this server for clients, got none'],
      [
        { signIn: { identify: FUNCTION } },
        'signIn: url: expected the address of this server for browsers, got nothing',
      ],
      [{ rate: { perSecond: 0, burst: 1 } }, 'rate: perSecond: expected a number above 0, got number 0'],
      [{ rate: { perSecond: 1 } }, 'rate: burst: expected a number of at least 1, got nothing'],
      [{ rate: { perSecond: 1, burst: 1, per: 1 } }, 'rate: per: no such option; there are perSecond, burst'],
      [
        { auth: oauth({ resource: RESOURCE, issuer: ISSUER }), authenticate: FUNCTION },
        'expected "auth" or "authenticate", got both',
      ],
    ],
  },
  MetricsAddress: {
    ...within('http: metrics: ', http, 'metrics'),
    base: { port: 1 },
    rows: { port: whole(0, 65_535), host: row('an address such as "127.0.0.1"', ['10']) },
  },
  ServerCardOptions: {
    ...within('http: card: ', http, 'card'),
    base: { url: RESOURCE },
    rows: {
      url: row('an https address without a query', [RESOURCE], ['http://example.com/mcp', `${RESOURCE}?a=b`]),
      name: row('a domain backwards, a slash and a name, such as "com.example/shop"', ['com.example/shop'], ['shop']),
      catalog: row('a path such as "/.well-known/ai-catalog.json", or false', [false, '/catalog.json']),
    },
  },
  SignInOptions: {
    ...within('http: signIn: ', http, 'signIn'),
    base: { url: `${ISSUER}/callback` },
    rows: {
      url: row(
        'an https address such as "https://mcp.example.com/oauth/callback"',
        [ISSUER],
        ['http://mcp.example.com'],
      ),
      identify: functional,
    },
  },
  StdioOptions: {
    ...of('stdio: ', stdio),
    rows: {
      input: row('a readable stream', [process.stdin]),
      output: row('a writable stream', [process.stdout]),
      ...each(['exit', 'signals'], flag),
      ...each(['parentCheckMs', 'flushMs'], delay),
      ...{ principal, scopes },
    },
    refused: NOBODY,
  },
  SocketOptions: {
    ...of('socket: ', socket, 'x'),
    rows: {
      ...{ maxConnections: count, flushMs: delay, ownsProcess: flag, onCount: functional },
      ...{ principal, scopes },
    },
    refused: NOBODY,
  },
  SqliteOptions: {
    ...of('sqlite: ', sqlite, 'x'),
    rows: { ...STORE, maxBytes: row('a whole number of at least 1', [262_144]) },
    refused: [[{ maxBytes: 5 }, 'maxBytes: expected at least 262144, got 5']],
  },
  PostgresOptions: {
    ...of('postgres: ', postgres, 'postgres://user@host/database'),
    rows: {
      ...STORE,
      schema: row('lower-case letters, digits and _, at most 63', ['shop'], ['a; DROP', 'x'.repeat(64)]),
      session: secret('the URL of a database on one host', ['postgres://user@host/database']),
      readers: count,
      ...each(['connectMs', 'outageMs'], time),
    },
  },
  ResourceServerOptions: {
    ...of('oauth: ', oauth),
    base: { resource: RESOURCE, issuer: ISSUER },
    rows: {
      resource: row(
        'the https address of the MCP endpoint, such as "https://mcp.example.com/mcp"',
        [RESOURCE],
        ['mcp.example.com', 'http://mcp.example.com/mcp', `${RESOURCE}#x`, undefined],
      ),
      issuer: row('the address of an authorization server, or { issuer, … }', [ISSUER], [undefined]),
      metadata: { ...address, refuses: ['/metadata', 'http://a.example'] },
      scopes,
      implies: object,
      otherAudiences: row('an array of audiences, such as ["account"]', [[]], [['']]),
      type: oneOf('at+jwt', 'JWT'),
      perUser: row('a boolean', [true, false]),
      ...each(['leewayMs', 'rememberMs'], between('whole milliseconds', 0, LONGEST_MS)),
      ...each(['jwksAgeMs', 'jwksCooldownMs'], between('whole milliseconds', 1_000, LONGEST_MS)),
      dpop: oneOf('accepted', 'required', 'off'),
      failures: { ...rate, expects: 'false or { perSecond, burst }', takes: [false] },
      anonymous: row('an array of methods, such as ["server/discover"]', [[], false]),
      clock,
    },
    refused: [
      [{ issuer: [] }, 'issuer: expected the address of an authorization server, got none'],
      [{ issuer: [ISSUER, ISSUER] }, `issuer: ${ISSUER} is there twice`],
      ...['10', '', 'http://a.example'].map((issuer) => [{ issuer }, 'issuer: expected an https address'] as const),
      [{ scopes: ['offline_access'] }, 'scopes: offline_access is for clients to request'],
      [{ scopes: ['a b'] }, 'scopes: expected scopes'],
      [{ failures: { perSecond: 1 } }, 'failures: burst: expected a number of at least 1, got nothing'],
      [{ anonymous: ['tools/lst'] }, 'anonymous: expected requests of 2026-07-28'],
      [{ anonymous: ['initialize'] }, 'anonymous: expected requests of 2026-07-28'],
    ],
  },
  IssuerOptions: {
    ...within('oauth: ', oauth, 'issuer', { resource: RESOURCE }),
    base: { issuer: ISSUER },
    rows: {
      ...each(['issuer', 'jwks'], address),
      introspection: row('{ clientId, clientSecret }'),
      algorithms: row('at least one', [['RS256']], [[]]),
      audience: row('the aud of tokens for this server', ['10']),
    },
    refused: [
      [{ algorithms: ['HS256'] }, 'algorithms: expected some of RS256'],
      [{ algorithms: ['none'] }, 'algorithms: expected some of RS256'],
      [{ introspection: { clientId: 'a' } }, 'introspection: expected clientSecret or privateKey, got none'],
    ],
  },
  IntrospectionOptions: {
    where: 'oauth: introspection.',
    read: (introspection) =>
      Reflect.apply(oauth, undefined, [{ resource: RESOURCE, issuer: { issuer: ISSUER, introspection } }]),
    base: { clientId: 'a', clientSecret: SECRET },
    rows: {
      endpoint: address,
      clientId: row('the id of a client', ['10'], [undefined]),
      clientSecret: secret('a string that is not empty', ['10']),
      privateKey: secret('a PKCS #8 key in PEM', [], [SECRET]),
      algorithm: row('one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519', ['ES256']),
    },
  },
  OtelOptions: {
    ...of('otel: ', otel),
    rows: {
      mode: oneOf('spans', 'propagate', 'off'),
      ...each(['metrics', 'arguments', 'results'], flag),
      redact: row('a function (value, what, tool)', [FUNCTION], [['card']]),
    },
  },
  InspectorOptions: {
    where: 'openInspector: ',
    async read(given) {
      const opened: unknown = await Reflect.apply(openInspector, undefined, [createServer(INFO), given]);
      await Object(opened).close();
    },
    rows: {
      port: row('a whole number from 0 to 65535', [0], [65_536]),
      token: secret('43 to 128 characters of A-Z, a-z, 0-9, - and _ (256 random bits)', ['x'.repeat(43)], ['guessed']),
      ...each(['control', 'history'], flag),
      redact: row('{ keys, values }', [{ keys: ['iban'], values: [/x/] }, {}]),
      maxViewers: count,
      connect: functional,
    },
    refused: [
      [{ redact: { keys: 'iban' } }, 'redact: keys: expected a list of strings'],
      [{ redact: { values: ['x'] } }, 'redact: values: expected a list of patterns'],
    ],
  },
  ConnectOptions: {
    ...of('connect: ', clientOn, { channel: FUNCTION, name: 'x' }),
    rows: {
      ...each(['name', 'version'], filled),
      title: text,
      ...each(['elicit', 'elicitUrl', 'sample', 'roots', 'onLog', 'inspect'], functional),
      sampling: row('{ tools, context }', [{}, { tools: true, context: true }]),
      extensions: object,
      eras: oneOf('auto', 'legacy', 'modern'),
      ...each(['timeoutMs', 'maxTimeoutMs', 'connectMs', 'probeMs', 'waitMs', 'drainMs'], time),
      ...each(['maxMessageBytes', 'maxInFlight', 'maxRounds', 'maxListPages', 'maxListed'], count),
      ...each(['maxSkillFiles', 'maxSkillBytes'], count),
      validate: flag,
      logLevel: oneOf('debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'),
      auth: row('an authorization, such as oauth() of troupe/client', [signIn()]),
      ...{ log, clock },
    },
    refused: [[{ sampling: { tools: 1 } }, 'sampling: tools: expected true or false']],
  },
  HttpTarget: {
    ...of('connect: ', checkTarget, 'connect: '),
    base: { url: ISSUER },
    rows: {
      url: row('a URL', [ISSUER, new URL(ISSUER)]),
      headers: object,
      auth: row('an authorization, such as oauth() of troupe/client', [signIn()]),
      name: filled,
    },
  },
  StdioCommand: {
    ...of('connect: ', checkTarget, 'connect: '),
    base: { command: 'node' },
    rows: {
      command: filled,
      args: row('a list of strings', [[], ['--port', 3000]], [[null]]),
      env: row('an object of strings', [{}, { A: 'b' }], [{ A: {} }]),
      cwd: row('a path', ['10', new URL('file:///tmp')]),
      name: filled,
      stderr: functional,
    },
  },
  CallOptions: {
    ...of('call: ', (given: CallOptions) => checkCallOptions('call', given)),
    rows: {
      signal: row('an AbortSignal', [new AbortController().signal]),
      ...each(['timeoutMs', 'maxTimeoutMs'], time),
      ...each(['onProgress', 'onTask', 'onLog'], functional),
      logLevel: oneOf('debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'),
      meta: object,
      idempotencyKey: filled,
    },
  },
  ListOptions: {
    ...of('tools: ', (given: ListOptions) => checkList('tools', given)),
    rows: { fresh: flag, timeoutMs: time },
  },
  OAuthOptions: {
    ...of('oauth: ', signIn),
    rows: {
      ...each(['clientId', 'clientName'], filled),
      clientSecret: secret('a string that is not empty', ['10']),
      privateKey: secret('a PKCS #8 key in PEM', [], [SECRET]),
      algorithm: oneOf('ES256', 'RS256', 'PS256', 'EdDSA'),
      ...each(['issuer', 'redirectUrl'], row('an address such as "https://login.example.com"', [ISSUER])),
      scopes: strings,
      grant: oneOf('authorization_code', 'client_credentials'),
      ...each(['assertion', 'authorize', 'show'], functional),
      exchange: row('{ tokenEndpoint, clientId, idToken }', [
        { tokenEndpoint: ISSUER, clientId: 'a', idToken: FUNCTION },
      ]),
      ...each(['openBrowser', 'interactive'], flag),
      signInMs: time,
      dpop: row('"auto", true or false', ['auto', true, false]),
      tokens: row('a store of tokens, such as fileTokens(path)', [fileTokens('x')]),
      clock,
    },
  },
  FileTokensOptions: {
    ...of('fileTokens: ', fileTokens, 'x'),
    rows: { ...each(['leaseMs', 'waitMs'], time), clock },
  },
  SubscribeOptions: {
    where: 'subscribe: ',
    read: (given) => Reflect.construct(CallbackSubscription, ['note', {}, given, { closes: () => FUNCTION }]),
    base: { url: ISSUER },
    rows: {
      url: row('a URL', [ISSUER], ['mine', undefined]),
      secret: secret('"whsec_" and 24 to 64 bytes in base64', [WHSEC], ['whsec_c2hvcnQ=']),
      ttlMs: { ...time, takes: [null, 1, LONGEST_MS] },
      since: filled,
      maxAgeMs: row('whole milliseconds', [0, LONGEST_MS]),
      ...each(['onChange', 'onGap'], functional),
    },
  },
  BodyHookSecret: {
    ...of('github: ', github),
    base: { secret: SECRET },
    rows: { secret: HOOK_SECRET, repeats: oneOf('body', 'id') },
    refused: WRONG_SECRETS,
  },
  HmacOptions: {
    ...of('hmac: ', hmac),
    base: { secret: SECRET, header: 'x-signature' },
    rows: {
      secret: HOOK_SECRET,
      repeats: oneOf('body', 'id'),
      ...each(['header', 'idHeader', 'typeHeader'], row('the name of a header', ['10'], ['a b'])),
      encoding: oneOf('hex', 'base64'),
      algorithm: oneOf('sha256', 'sha512'),
      prefix: text,
    },
    refused: WRONG_SECRETS,
  },
  ...Object.fromEntries(
    Object.entries({ DatedHookSecret: stripe, Slack: slack, StandardWebhooks: standardWebhooks }).map(
      ([type, verifier]) => [
        type,
        {
          ...of(`${verifier.name}: `, verifier),
          base: { secret: STANDARD },
          rows: {
            secret: { ...HOOK_SECRET, takes: [STANDARD, WHSEC] },
            toleranceMs: between('whole milliseconds', 1, 3_600_000),
          },
          refused: WRONG_SECRETS,
        },
      ],
    ),
  ),
  ReceiverOptions: {
    ...of('receiver: ', receiver),
    base: { secrets: WHSEC, onEvent: FUNCTION },
    rows: {
      secrets: secret(
        '"whsec_" and 24 to 64 bytes in base64',
        [WHSEC, [WHSEC], FUNCTION],
        ['whsec_c2hvcnQ=', undefined],
      ),
      onEvent: { ...functional, refuses: [undefined] },
      ...each(['onGap', 'onTerminated', 'log'], functional),
      received: row('an object with "has" and "add", such as a Set', [new Set()]),
      maxBytes: whole(1, 4_194_304),
      timeoutMs: time,
      toleranceMs: whole(1, 3_600_000),
      clock,
    },
    refused: [
      [{ secrets: [] }, 'secrets: expected 1 to 64 secrets, got 0'],
      [{ secrets: Array.from({ length: 65 }, () => WHSEC) }, 'secrets: expected 1 to 64 secrets, got 65'],
    ],
  },
  HookOptions: {
    ...registered('webhook "/x": ', 'webhook', '/x'),
    base: { verify: FUNCTION, to: FUNCTION },
    rows: {
      verify: row('a verifier such as github({ secret }) of troupe/webhooks', [FUNCTION], [undefined]),
      to: functional,
      emit: { ...row('an event type of server.event, or its name', ['10'], [5]), beside: { to: undefined } },
      attempts: whole(1, 50),
      ...each(['retryMs', 'timeoutMs'], time),
      concurrency: whole(1, 256),
      maxBytes: whole(1, 4_194_304),
      rate,
    },
    refused: [
      [{ to: undefined }, 'expected one of "to" and "emit", got neither'],
      [{ emit: 'push' }, 'expected one of "to" and "emit", got both'],
    ],
  },
  SkillsOptions: {
    ...of('server.skills: ', checkSkillsOptions),
    rows: {
      prefix: row(
        'names of letters, digits, "_", "-" and "." between single slashes, such as "acme/office"',
        ['10', 'acme/office'],
        ['/a', 'a/', 'a//b', '../a', 'a b', 'a/.b'],
      ),
      ...each(['watch', 'strict'], flag),
      ttlMs: delay,
      cacheScope: oneOf('public', 'private'),
      scopes: strings,
      allow: functional,
    },
  },
  ScheduleOptions: {
    ...registered('schedule "a": ', 'schedule', 'a', FUNCTION),
    base: { everyMs: 1_000 },
    rows: {
      cron: { ...row('a string that is not empty', ['0 3 * * *']), beside: { everyMs: undefined } },
      timeZone: {
        ...row('a string that is not empty', ['Europe/Berlin']),
        beside: { everyMs: undefined, cron: '* * * * *' },
      },
      everyMs: between('whole milliseconds', 1_000, 31_622_400_000, ' (366 days)'),
      at: {
        ...row(
          'a Date, or ISO 8601 with "Z" or an offset such as "2026-12-24T18:00:00+01:00"',
          ['2026-12-24T17:00:00Z'],
          ['2026-12-24T18:00:00', 'tomorrow', new Date('never')],
        ),
        beside: { everyMs: undefined },
      },
      missed: oneOf('once', 'skip', 'all'),
      spreadMs: between('whole milliseconds', 0, 86_400_000, ' (a day)'),
      timeoutMs: time,
    },
    refused: [
      ...['10', 'every day', '60 * * * *', '@reboot', '2026-12-24T18:00:00'].map(
        (cron) => [{ everyMs: undefined, cron }, 'cron: expected five fields'] as const,
      ),
      [{ everyMs: undefined, cron: '0 0 31 2 *' }, 'cron: no date matches'],
      ...['10', 'Europe/Berln'].map(
        (timeZone) => [{ everyMs: undefined, cron: '* * * * *', timeZone }, 'timeZone: expected an IANA name'] as const,
      ),
      [{ cron: '* * * * *' }, 'expected one of cron, everyMs and at'],
      [{ everyMs: undefined }, 'expected one of cron, everyMs and at'],
      [{ timeZone: 'Europe/Berlin' }, 'timeZone: expected it with cron only'],
    ],
  },
  ToolOptions: {
    ...registered('tool "t": ', 'tool', 't', FUNCTION),
    open: true,
    rows: {
      ...DESCRIBED,
      annotations: object,
      timeoutMs: time,
      rerun: flag,
      cpu: row('the URL of a module', [false]),
      task: oneOf('never', 'allowed', 'required'),
      app: row('the name of an app, true or false', ['10', '', true, false]),
      visibleTo: row('a list of "model" and "app", not empty', [['app']], [[], ['user']]),
      limits: row('an object such as { perMinute: 10 }', [{ perDay: 1 }]),
      approve: row('a policy such as { by: "caller" } or { by: { scope: "ops" }, quorum: 2 }', [
        true,
        { by: 'caller' },
      ]),
    },
    refused: [
      [{ annotations: { readOnlyHint: 'yes' } }, 'annotations: readOnlyHint: expected true or false'],
      [{ cpu: true }, 'cpu: expected the URL of a module whose default export is the handler'],
      ...MISNAMED,
    ],
  },
  ResourceOptions: {
    ...registered('resource "x://a": ', 'resource', 'x://a', FUNCTION),
    open: true,
    rows: {
      ...DESCRIBED,
      ...OF_TOOLS,
      ...each(['name', 'mimeType'], text),
      ...each(['size', 'ttlMs'], from(0)),
      ...each(['annotations', 'complete'], object),
      cacheScope: oneOf('public', 'private'),
    },
    refused: [
      [{ annotations: { audience: ['me'] } }, 'annotations: audience: expected'],
      [{ annotations: { priority: 2 } }, 'annotations: priority: expected a number from 0 to 1'],
      [{ complete: { b: FUNCTION } }, 'complete.b: there is no such argument'],
      ...MISNAMED,
    ],
  },
  PromptOptions: {
    ...registered('prompt "p": ', 'prompt', 'p', FUNCTION),
    open: true,
    rows: { ...DESCRIBED, ...OF_TOOLS, complete: object, arguments: row('a list of arguments', [[]]) },
    refused: [
      [{ arguments: [{}] }, 'arguments: expected each argument to have a string "name"'],
      [{ arguments: [{ name: 'a' }, { name: 'a' }] }, 'arguments: expected each name once, got "a" twice'],
      [{ arguments: [], input: { type: 'object' } }, 'expected "input" or "arguments", got both'],
      ...MISNAMED,
    ],
  },
  MachineOptions: {
    ...registered('machine "m": ', 'machine', 'm'),
    open: true,
    base: { events: { pay: true } },
    rows: {
      ...DESCRIBED,
      events: row('an object: the schema of each event that clients may send, or true'),
      ...each(['view', 'migrate'], functional),
      schemas: row('an object such as { view: z.object({ … }) }', [{}]),
      version: filled,
      ...each(['previous', 'emits', 'annotations'], object),
      app: row('true, false or options', [true, false, {}], ['yes']),
      ...each(['ttlMs', 'idleMs'], life),
      ...each(['single', 'skill'], flag),
      eventScopes: row('an object: the scopes of each event', [{}]),
      schedules: row('an object: the schedules of each instance, by their names', [{}], ['nightly']),
      timeoutMs: time,
      limits: row('an object such as { create: { perMinute: 10 } }', [{}]),
      key: row(
        '"principal", "tenant", "session" or an object such as { argument: \'room\' }',
        ['principal'],
        ['everyone'],
      ),
      create: { ...row('"event", "create" or a function', ['event', FUNCTION]), beside: { key: 'principal' } },
      roles: row("an object such as { of: ({ principal }) => …, member: { events: '*' } }"),
      tenant: { ...functional, beside: { key: 'tenant' } },
      keep: { ...flag, beside: { key: 'principal' } },
    },
    refused: [
      [{ events: {} }, 'events: expected at least one event'],
      [{ schemas: { other: {} } }, 'schemas: other: expected "view" or "output"'],
      [{ app: { onn: [] } }, 'app: onn: no such option'],
      [{ app: { on: ['send'] } }, 'app: on: expected a list of "create" and "get"'],
      [{ app: { confirm: ['buy'] } }, 'app: confirm: expected a list of events: pay'],
      [{ app: { hide: 'sign' } }, 'app: hide: expected a list of names'],
      [{ app: { order: 'sign' } }, 'app: order: expected a list of names'],
      [{ app: { chart: 'list' } }, 'app: chart: expected "picture" or "steps"'],
      [{ app: { title: 7 } }, 'app: title: expected a string'],
      [{ app: { labels: { cart: 'Basket' } } }, 'app: labels: cart: no such option; there are states, events, delays'],
      [{ app: { labels: { states: { crat: 'x' } } } }, 'app: labels: states: crat: no such name; there are on'],
      [{ app: { labels: { values: { sku: 'Tee' } } } }, 'app: labels: values: sku: expected an object'],
      [{ app: { words: { agian: 'Nochmal' } } }, 'app: words: agian: no such name; there are waiting'],
      [{ app: { translations: { 'de_CH!': {} } } }, 'app: translations: expected language tags'],
      [
        { app: { translations: { de: { words: { again: 7 } } } } },
        'app: translations: de: words: again: expected a string',
      ],
      [{ eventScopes: { pay: 'a' } }, 'eventScopes: pay: expected an array of scopes'],
      [{ schedules: { a: { cron: '0 3 * * *' } } }, 'schedules.a: event: expected a string that is not empty'],
      [{ schedules: { a: { cron: '0 3 * *', event: 'pay' } } }, 'schedules.a: cron: expected five fields'],
      [
        { schedules: { a: { everyMs: 1e3, event: 'tidi' } } },
        'schedules.a: event: no state accepts "tidi"; the machine has',
      ],
      [{ schedules: { a: null } }, 'schedules.a: expected options, got null'],
      [
        { limits: { perDay: 1 } },
        'limits: perDay: expected the limits of each tool of the machine, such as { create: {',
      ],
      [
        { limits: { tock: { perDay: 1 } } },
        'limits.tock: there is no such tool; there are create, pay, get, list, end',
      ],
      [{ keep: true }, 'keep: expected the option key, too'],
      [{ key: 'tenant' }, 'key: "tenant" needs the option tenant'],
      [{ key: { argument: 'type' } }, 'key: argument: expected a name'],
      [{ key: { argument: 'room' } }, 'roles: expected them, because a name is not a permission'],
      [{ key: 'principal', keep: true, ttlMs: 1_000 }, 'ttlMs: an instance with keep: true does not expire'],
      [{ key: 'principal', roles: { of: FUNCTION } }, 'roles: expected a role besides of'],
      [
        { key: 'principal', roles: { of: FUNCTION, all: { events: ['nothing'] } } },
        'roles: all: events: expected "end" or one of pay, got "nothing"',
      ],
      ...MISNAMED,
    ],
  },
  CallLimits: {
    ...ofTool('tool "t": limits: ', 'limits'),
    base: { perMinute: 1 },
    rows: {
      perMinute: row('a number above 0', [0.1, 1.5], [0]),
      perSecond: { ...row('a number above 0', [0.1, 1.5], [0]), beside: { perMinute: undefined } },
      ...each(['concurrent', 'perDay', 'burst'], count),
      cost: functional,
    },
    refused: [
      [{ perSecond: 1 }, 'expected perSecond or perMinute, got both'],
      [{ perMinute: undefined, burst: 5, perDay: 1 }, 'burst: expected perSecond or perMinute beside it, got none'],
    ],
  },
  ApprovalPolicy: {
    ...ofTool('tool "t": approve: ', 'approve'),
    base: { by: { scope: 'ops' } },
    rows: {
      ...ASKING,
      by: { ...ASKING.by, refuses: [undefined, ...ASKING.by.refuses] },
      title: row('a string of 1 to 100 characters', ['10'], ['x'.repeat(101)]),
      show: row('a list of 1 to 100 names', [['a']], [['']]),
      preview: row('an object such as { tool: "refund_preview", required: true }', ['10']),
      remember: row('an object such as { for: "session", match: ["order"], max: 5 }', [{ for: 'session' }]),
    },
    refused: [
      [{ preview: '' }, 'preview: expected a string that is not empty'],
      [
        { remember: { for: 1e12 } },
        'remember: for: expected "session", or milliseconds from 1 to 2592000000 (30 days)',
      ],
      [{ remember: { for: 'session', max: 0 } }, 'remember: max: expected a whole number from 1'],
      [{ remember: { for: 'session', runs: 1 } }, 'remember: runs: expected true or false'],
      [{ by: 'caller', quorum: 2 }, 'quorum: expected 1 for { by: "caller" }, who is one, got number 2'],
      [{ by: { principals: ['a'] }, quorum: 2 }, 'quorum: expected no more people than "principals" names, got 2'],
      [{ by: 'caller', self: true }, 'self: expected approvers other than the caller beside it'],
    ],
  },
  ApprovalRequest: {
    ...of('ctx.approve: ', readRequest),
    base: { title: 'Refund', by: { scope: 'ops' } },
    rows: {
      ...ASKING,
      title: row('a string of 1 to 100 characters', ['10'], ['x'.repeat(101), undefined]),
      show: row('an object with JSON', [{}]),
    },
    refused: [
      [{ by: undefined, quorum: 2 }, 'quorum: expected 1'],
      [{ preview: 'look' }, 'preview: no such option'],
    ],
  },
  AppOptions: {
    ...registered('app "a": ', 'app', 'a'),
    base: { html: '<!doctype html><p>x' },
    rows: {
      name: elsewhere,
      html: row('the text of a page, the URL of its file, or a function', [FUNCTION], [undefined]),
      entry: { ...row('the path or the file: URL of a script'), beside: { html: undefined } },
      tools: row('a list of the names of tools', [[]], ['show']),
      csp: row('an object such as { connectDomains: [] }', [{}]),
      permissions: row('a list of camera, microphone, geolocation, clipboardWrite', [[]]),
      prefersBorder: flag,
      ...each(['title', 'description'], text),
      icons,
    },
    refused: [
      ...['10', '', '<p>hello</p>'].map(
        (html) => [{ html }, 'html: expected an HTML5 document, which begins with <!doctype html>'] as const,
      ),
      ...['10', ''].map((entry) => [{ html: undefined, entry }, 'entry: '] as const),
      [{ entry: new URL('file:///x.ts') }, 'expected "html" or "entry", got both'],
      [{ csp: { connect: [] } }, 'csp.connect: no such option'],
      [
        { permissions: ['usb'] },
        'permissions: expected camera, microphone, geolocation, clipboardWrite, got string "usb"',
      ],
    ],
  },
  EventOptions: {
    ...registered('event "a": ', 'event', 'a'),
    open: true,
    base: { description: 'd', payload: { type: 'object', properties: {} } },
    rows: {
      ...DESCRIBED,
      description: row('a string that is not empty', ['10'], [undefined]),
      ...each(['match', 'shape'], functional),
      retain: object,
      inFlight: whole(1, 50),
    },
    refused: [
      [{ retain: { events: 0 } }, 'retain: events: expected a whole number of at least 1'],
      [{ retain: { ms: 0 } }, 'retain: ms: expected whole milliseconds'],
      [{ retain: { bytes: 0 } }, 'retain: bytes: expected'],
      [{ payload: undefined }, 'payload: expected the schema of its data, got nothing'],
      [{ payload: { type: 'string' } }, 'payload: expected the schema of an object'],
      [{ by: 'to' }, 'by: expected a required member of "payload" and of "input", got "to"'],
      [{ by: 7 }, 'by: expected a string that is not empty'],
      [{ input: { type: 'object', properties: { other: {} } } }, 'the payload has no member "other"'],
    ],
  },
  RuleName: {
    where: 'server.authorize: ',
    read: (given) => Reflect.apply(empty.authorize, empty, [FUNCTION, given]),
    rows: each(['name', 'version'], row('a string of 1 to 100 characters', ['10'], ['x'.repeat(101)])),
  },
  MountOptions: {
    where: 'mount "shop": ',
    read(given) {
      Reflect.apply(readMountOptions, undefined, ['shop', given]);
      return new OfferedNames('shop', Object(given));
    },
    rows: {
      ...each(['maxUpstreamConnections', 'maxUpstreamInFlight', 'maxEventRelays', 'maxListPages', 'maxListed'], count),
      ...each(['maxListBytes', 'maxDefinitionBytes', 'maxMessageBytes', 'maxRounds', 'maxSamplingPerCall'], count),
      ...each(['connectMs', 'probeMs', 'upstreamWaitMs', 'upstreamIdleMs', 'listMs'], time),
      ...each(['firstListMs', 'staleMs', 'timeoutMs'], time),
      ...each(['validate', 'trust', 'required'], flag),
      prefix: row('false, or 1 to 32 letters, digits, "_", "." and "-", such as "shop_"', [false, '10'], ['a b']),
      rename: object,
      ...each(['only', 'except'], row('a list of names or patterns, such as ["search_*"]', [[]], [[''], [1]])),
      auth: elsewhere,
      approve: row(
        'a list of at most 100 patterns and entries, such as ["delete_*", { "destructive": true }]',
        [[]],
        ['a'],
      ),
      limits: row('an object such as { perMinute: 10 }', [{ perDay: 1 }]),
      share: oneOf('owner', 'everyone'),
      pins: oneOf('off', 'warn', 'hold'),
      expose: row('"all", "search", "code" or ["search", "code"]', ['all', ['search', 'code']], [['search', 'search']]),
      instructions: row('a text of 1 to 4000 characters', ['10'], ['x'.repeat(4_001)]),
      eras: oneOf('auto', 'legacy', 'modern'),
      scopes: row('a list of scopes', [[]]),
      allow: row('a function (call, ctx)', [FUNCTION]),
      ...each(['pinFile', 'catalogueFile'], row('the path of a file', ['10'])),
    },
    refused: [
      [{ rename: { a: 'b c' } }, 'rename: "a": expected the whole new name'],
      [{ rename: { a: 'x', b: 'x' } }, 'rename: expected each new name once, got "x" for "a" and "b"'],
      [{ limits: { perMinute: 0 } }, 'limits: perMinute: expected a number above 0'],
      ...WRONG_APPROVALS,
    ],
  },
  OpenApiOptions: {
    ...of('openapi: ', openapi, './openapi.json'),
    rows: {
      baseUrl: row('an address such as https://api.example.com/v1', [ISSUER], ['api']),
      ...each(['variables', 'headers'], row('an object of strings', [{}], [{ a: 1 }])),
      origins: row('a list of addresses, such as ["https://uploads.example.com"]', [[]], [['x']]),
      methods: strings,
      ...each(['readOnly', 'async'], flag),
      operations: object,
      xml: row('"text"', ['text']),
      outputs: row('"declare"', ['declare']),
      maxResponseBytes: count,
      refreshMs: time,
      auth: elsewhere,
    },
    refused: [
      [{ operations: { read: { hide: true } } }, 'operations: read: hide: expected a list of strings'],
      [{ operations: { read: { timeoutMs: 0 } } }, 'operations: read: timeoutMs: expected'],
      [{ operations: { read: { approve: false } } }, 'operations: read: approve: expected true, or an object'],
      [
        { operations: { read: { approve: { tools: ['*'] } } } },
        'operations: read: approve: tools: no such option of one tool',
      ],
      [{ operations: { read: { approve: { by: [] } } } }, 'operations: read: approve: by: expected'],
      [{ operations: { read: { result: {} } } }, 'operations: read: result: pick: expected'],
    ],
  },
};
