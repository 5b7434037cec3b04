/** `troupe serve --http`: all HTTP options of the program apply, and the command line can only restrict them. */
import * as assert from 'uvu/assert';
import { openHttp, readHttpAddress, restricted } from '../../src/cli/serving/http-address.ts';
import { http } from '../../src/core/http/http.ts';
import {
  type HttpOptions,
  resolveHttpOptions,
  type SharedHttpOptions,
  withShared,
} from '../../src/core/http/http-options.ts';
import { isRelocatable, relocate } from '../../src/core/http/node-transport.ts';
import { authOf } from '../../src/core/messages/auth.ts';
import type { Transport } from '../../src/core/transports/transport.ts';
import { suite } from '../harness/door.ts';

const test = suite('the address of troupe serve --http');

const ADDRESS = { port: 0, host: '127.0.0.1' };

/** A value for each option, none of them the default. */
const SHARED: Required<SharedHttpOptions> = {
  allowedHosts: ['mcp.example.com'],
  allowedOrigins: ['https://app.example.com'],
  allowedHeaders: ['X-Api-Key'],
  auth: { authenticate: () => ({ auth: authOf('ada') }), challenge: () => [], documents: new Map() },
  authenticate: () => 'ada',
  response: 'json',
  retryMs: 11,
  keepAliveMs: 12,
  stallMs: 13,
  sessionIdleMs: 14,
  idleConnectionMs: 23,
  replayMs: 15,
  maxReplayEvents: 16,
  maxReplayBytes: 17,
  maxExchanges: 18,
  maxExchangesPerPrincipal: 19,
  drainDelayMs: 22,
  rate: { perSecond: 20, burst: 21 },
  card: { url: 'https://mcp.example.com/mcp' },
  signIn: { url: 'https://mcp.example.com/oauth/callback', identify: () => 'ada' },
};

/** The options with which a transport would open. */
function given(transport: Transport): HttpOptions {
  let found: HttpOptions = {};
  if (!isRelocatable(transport)) throw new Error('it was not made by http()');
  relocate(transport, (options) => {
    found = options;
    return options;
  });
  return found;
}

const DEFAULTS = resolveHttpOptions({});
for (const [option, value] of Object.entries(SHARED)) {
  test(`S-35 http.${option} of the program applies, also with --http`, () => {
    const shared: SharedHttpOptions = { [option]: value };
    const valueIn = (options: HttpOptions): unknown => new Map(Object.entries(options)).get(option);
    assert.equal(valueIn(withShared({ port: 0 }, shared)), value);
    assert.equal(valueIn(given(openHttp(ADDRESS, shared, []))), value);
    assert.equal(valueIn(given(openHttp(ADDRESS, undefined, [http({ port: 1, ...shared })]))), value);
    assert.equal(valueIn(given(openHttp(ADDRESS, shared, [http({ port: 1 })]))), value);
    assert.not.equal(value, valueIn(DEFAULTS));
  });
}

test('S-35 an option of http() overrides that of createServer; undefined does not', () => {
  assert.is(withShared({ retryMs: 5 }, { retryMs: 6 }).retryMs, 5);
  const absent: Record<string, unknown> = { authenticate: undefined, retryMs: undefined };
  const { authenticate } = SHARED;
  assert.is(withShared(absent, { authenticate }).authenticate, authenticate);
  assert.is(resolveHttpOptions(absent).retryMs, DEFAULTS.retryMs);
});

test('S-35 the transport of the program serves at the address of the command line', () => {
  const own = http({ port: 1, host: '127.0.0.1', path: '/own', authenticate: () => 'ada' });
  assert.is(openHttp({ port: 2, host: '127.0.0.2' }, undefined, [own]), own);
  const { port, host, path, ownsProcess, authenticate } = given(own);
  assert.equal({ port, host, path, ownsProcess }, { port: 2, host: '127.0.0.2', path: '/own', ownsProcess: true });
  assert.is(authenticate?.(REQUEST), 'ada');
});

const REQUEST = {
  method: 'POST',
  url: '/',
  query: '',
  header: () => undefined,
  values: () => [],
  remoteAddress: undefined,
};
const OTHER: Transport = { name: 'http', open() {}, close: async () => {} };
for (const [title, own, expected] of [
  ['two addresses', [http({ port: 1 }), http({ port: 2 })], /at most one HTTP address, got 2/],
  ['a transport of another make', [OTHER], /listens over HTTP with http\(\)/],
] as const) {
  test(`S-35 a program with ${title} is rejected: its guards are unknown`, () => {
    assert.throws(() => openHttp(ADDRESS, undefined, own), expected);
  });
}

const HOSTS = ['mcp.example.com', 'two.example.com:8443'];
for (const [title, program, command, allowed] of [
  ['a name of the list', { allowedHosts: HOSTS }, { allowedHosts: ['mcp.example.com'] }, true],
  ['a name of the list in other letters', { allowedHosts: HOSTS }, { allowedHosts: ['MCP.example.com'] }, true],
  ['one port of a name', { allowedHosts: HOSTS }, { allowedHosts: ['mcp.example.com:443'] }, true],
  ['another name', { allowedHosts: HOSTS }, { allowedHosts: ['mcp.example.com', 'evil.example.com'] }, false],
  ['a name that only begins like one', { allowedHosts: HOSTS }, { allowedHosts: ['mcp.example.com.evil.net'] }, false],
  ['another port', { allowedHosts: HOSTS }, { allowedHosts: ['two.example.com:9999'] }, false],
  ['every port of a name with one', { allowedHosts: HOSTS }, { allowedHosts: ['two.example.com'] }, false],
  ['any name where the list is empty', { allowedHosts: [] }, { allowedHosts: ['mcp.example.com'] }, false],
  ['any name where there is no list', {}, { allowedHosts: ['mcp.example.com'] }, true],
  ['an origin of the list', { allowedOrigins: ['https://a.b'] }, { allowedOrigins: ['https://a.b'] }, true],
  ['another origin', { allowedOrigins: ['https://a.b'] }, { allowedOrigins: ['http://a.b'] }, false],
  ['any origin where the list is empty', { allowedOrigins: [] }, { allowedOrigins: ['https://a.b'] }, false],
  ['any origin where there is no list', {}, { allowedOrigins: ['https://a.b'] }, true],
  ['an address for all, of a program for this machine', { host: '127.0.0.1' }, { host: '0.0.0.0' }, false],
  ['another address', { host: '10.0.0.5' }, { host: '10.0.0.6' }, false],
  ['the same address', { host: '10.0.0.5' }, { host: '10.0.0.5' }, true],
  ['this machine only', { host: '10.0.0.5' }, { host: '::1' }, true],
  ['one address of all', { host: '0.0.0.0' }, { host: '10.0.0.6' }, true],
  ['an address where the program names none', {}, { host: '0.0.0.0' }, true],
] as const) {
  test(`S-36 the command line may${allowed ? '' : ' not'} say ${title}`, () => {
    const address = { ...ADDRESS, ...command };
    if (allowed) assert.equal({ ...restricted(program, address), ...command }, restricted(program, address));
    else assert.throws(() => restricted(program, address), /^--(allow-host|allow-origin|http): expected/);
  });
}

test('S-36 an address for others needs the allowed hosts of the program, or of the command line', () => {
  const address = { port: 0, host: '0.0.0.0' };
  assert.throws(() => openHttp(address, undefined, []), /allowedHosts.*--allow-host/);
  openHttp(address, { allowedHosts: HOSTS }, []);
  openHttp({ ...address, allowedHosts: HOSTS }, undefined, []);
});

test('an address is a port, or a host and a port', () => {
  assert.equal(readHttpAddress({ http: '3000' }), { port: 3_000, host: '127.0.0.1' });
  assert.equal(readHttpAddress({ http: '[::1]:3000', path: '/x' }), { port: 3_000, host: '::1', path: '/x' });
  assert.is(readHttpAddress({}), undefined);
});
