/** Who is compared: the floor, Troupe, and its peers, each with the ways in which it can be called. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Way } from './http-requests.ts';

export type Era = 'legacy' | 'modern';

export interface Contender {
  readonly name: string;
  readonly kind: 'floor' | 'ours' | 'peer';
  /** Files below this folder. */
  readonly http: string;
  readonly stdio: string;
  readonly ways: readonly Way[];
  readonly eras: readonly Era[];
}

export const FLOOR = 'floor';
export const OURS = 'troupe';
/** The official SDK, in its two versions. */
export const SDK_2 = '@modelcontextprotocol/server 2.4';
export const SDK_1 = '@modelcontextprotocol/sdk 1.32';

const CONTENDERS: readonly Contender[] = [
  {
    name: FLOOR,
    kind: 'floor',
    http: 'servers/floor-http.mjs',
    stdio: 'servers/floor.mjs',
    ways: ['modern', 'session'],
    eras: ['modern', 'legacy'],
  },
  {
    name: OURS,
    kind: 'ours',
    http: 'servers/contender.mjs',
    stdio: 'servers/contender.mjs',
    ways: ['modern', 'session'],
    eras: ['modern', 'legacy'],
  },
  peer(SDK_2, 'v2', ['modern', 'stateless'], ['modern', 'legacy']),
  peer(SDK_1, 'v1', ['session', 'stateless'], ['legacy']),
  peer('fastmcp 4.20', 'fastmcp', ['session', 'stateless'], ['legacy']),
  peer('tmcp 1.20', 'tmcp', ['modern', 'session'], ['modern', 'legacy']),
];

function peer(name: string, file: string, ways: readonly Way[], eras: readonly Era[]): Contender {
  return { name, kind: 'peer', http: `peers/${file}.mjs`, stdio: `peers/${file}.mjs`, ways, eras };
}

/** The floor and Troupe, and the peers where they are installed. */
export function contenders(): readonly Contender[] {
  return CONTENDERS.filter(({ kind }) => kind !== 'peer' || hasPeers());
}

export function hasPeers(): boolean {
  return existsSync(fileURLToPath(new URL('./peers/node_modules/tmcp/package.json', import.meta.url)));
}
