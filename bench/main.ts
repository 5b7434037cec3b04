/** The benchmark: floors and ours in one run, over stdio and over HTTP. `--quick` takes a minute, and fails below a goal. */
import { parseArgs } from 'node:util';
import { startHttp } from './http.ts';
import { StdioEcho } from './stdio.ts';
import { type Comparison, compare } from './turns.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } } });
const { quick, only } = values;
if (only !== undefined && only !== 'stdio' && only !== 'http') {
  process.stderr.write(`--only: expected stdio or http, got ${only}\n`);
  process.exit(2);
}
const rounds = quick ? 5 : 15;
const line = (server: string, era: 'legacy' | 'modern', handshake: boolean) => () =>
  StdioEcho.start({ server, era, handshake });
const posted = (server: string, era: 'legacy' | 'modern', handshake: boolean) => () =>
  startHttp({ server, era, handshake });

const overStdio: Comparison = {
  title: 'echo over stdio',
  rounds,
  runs: [
    { inFlight: 1, calls: quick ? 3_000 : 20_000 },
    { inFlight: 64, calls: quick ? 40_000 : 200_000 },
  ],
  contenders: [
    { name: 'bare line loop, legacy messages', start: line('servers/floor.mjs', 'legacy', false) },
    {
      name: 'troupe, legacy session',
      start: line('servers/troupe.mjs', 'legacy', true),
      floor: 'bare line loop, legacy messages',
      goal: 0.6,
    },
    { name: 'bare line loop, modern messages', start: line('servers/floor.mjs', 'modern', false) },
    {
      name: 'troupe, modern',
      start: line('servers/troupe.mjs', 'modern', false),
      floor: 'bare line loop, modern messages',
      goal: 0.6,
    },
  ],
};

const overHttp: Comparison = {
  title: 'echo over HTTP',
  rounds: quick ? 11 : 21,
  runs: [
    { inFlight: 1, calls: quick ? 1_000 : 5_000 },
    { inFlight: 32, calls: quick ? 6_000 : 30_000 },
  ],
  contenders: [
    { name: 'bare node:http, legacy messages', start: posted('servers/floor-http.mjs', 'legacy', false) },
    {
      name: 'troupe, legacy session',
      start: posted('servers/troupe-http.mjs', 'legacy', true),
      floor: 'bare node:http, legacy messages',
      goal: 0.75,
    },
    { name: 'bare node:http, modern messages', start: posted('servers/floor-http.mjs', 'modern', false) },
    {
      name: 'troupe, modern',
      start: posted('servers/troupe-http.mjs', 'modern', false),
      floor: 'bare node:http, modern messages',
      goal: 0.8,
    },
  ],
};

if (only !== 'http' && !(await compare(overStdio))) process.exitCode = 1;
if (only !== 'stdio' && !(await compare(overHttp))) process.exitCode = 1;
