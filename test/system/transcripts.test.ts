/** Plays every transcript of `test/system/transcripts`, in each revision that its folder is for, and checks all that crosses the wire. */
import { readdirSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../src/core/protocol/json.ts';
import type { Revision } from '../../src/core/protocol/revisions.ts';
import type { Limits, Server } from '../../src/index.ts';
import { parseTranscript, playTranscript, SimulatedClock } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { wireChecker } from '../harness/wire.ts';
import { catalogue, doorkeeper, extended, guarded, librarian, nothing, stage, workshop } from './transcripts/casts.ts';

const FOLDER = new URL('transcripts/', import.meta.url);

/** The revisions that the transcripts of a folder are played in. */
const FOLDERS: Readonly<Record<string, readonly Revision[]>> = {
  legacy: ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'],
  '2024-11-05': ['2024-11-05'],
  '2025-03-26': ['2025-03-26'],
  '2025-06-18': ['2025-06-18'],
  '2025-11-25': ['2025-11-25'],
  'until-2025-06-18': ['2024-11-05', '2025-03-26', '2025-06-18'],
  'before-2025-06-18': ['2024-11-05', '2025-03-26'],
  'from-2025-03-26': ['2025-03-26', '2025-06-18', '2025-11-25'],
  'from-2025-06-18': ['2025-06-18', '2025-11-25'],
  'without-batches': ['2024-11-05', '2025-06-18', '2025-11-25'],
  modern: ['2026-07-28'],
  'both-eras': ['2025-11-25'],
};

type Cast = (clock: SimulatedClock, limits: Partial<Limits>) => Server;

/** Who plays, and within which limits, where it is not the stage with the default ones. By the name of the transcript. */
const CASTS: Readonly<Record<string, readonly [Cast, Partial<Limits>?]>> = {
  opening: [catalogue],
  discover: [catalogue],
  lists: [catalogue],
  pagination: [catalogue, { pageSize: 1 }],
  'nothing-offered': [nothing],
  'in-flight-limit': [stage, { maxInFlight: 2 }],
  'subscription-limit': [stage, { maxSubscriptions: 1 }],
  'listen-limits': [stage, { maxSubscriptions: 1, maxListens: 2, maxInFlight: 1 }],
  'size-limits': [stage, { maxMessageBytes: 300, maxDepth: 8 }],
  'batch-limit': [stage, { maxBatch: 2 }],
  deadline: [stage, { timeoutMs: 60_000, maxTimeoutMs: 600_000 }],
  'deadline-and-progress': [stage, { timeoutMs: 60_000, maxTimeoutMs: 600_000 }],
  shutdown: [stage, { graceMs: 5_000 }],
  extensions: [extended],
  skills: [librarian],
  middleware: [guarded],
  'task-life': [workshop],
  'task-question': [workshop],
  'handle-life': [doorkeeper],
  'handle-refused': [doorkeeper],
  'handle-expired': [doorkeeper],
  'handle-resources': [doorkeeper],
};

const SERVER_META = { 'io.modelcontextprotocol/serverInfo': { name: 'cast', version: '1.2.3' } };

/** What a modern request says of itself, at the least. */
const META: JsonObject = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The same, of a client that can be asked. */
const CAPABLE: JsonObject = {
  ...META,
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, roots: {}, sampling: {} },
};

for (const [folder, revisions] of Object.entries(FOLDERS)) {
  for (const revision of revisions) {
    const test = suite(folder === revision ? revision : `${revision} (${folder})`);
    for (const file of readdirSync(new URL(`${folder}/`, FOLDER)).sort()) {
      const text = readFileSync(new URL(`${folder}/${file}`, FOLDER), 'utf8');
      const topic = file.replace(/\.txt$/, '');
      test(`${topic}: ${parseTranscript(text).why}`, async () => {
        const clock = new SimulatedClock();
        const [cast, limits = {}] = CASTS[topic] ?? [stage];
        const server = cast(clock, limits);
        const check = wireChecker(revision);
        await playTranscript(text, server, {
          clock,
          values: { revision, meta: META, capable: CAPABLE, server: SERVER_META },
          onMessage: (message) => check(message.direction, message.text),
        });
        const closing = server.close();
        await clock.advance(5_000);
        await closing;
      });
    }
  }
}

const whole = suite('the transcripts');

whole('every folder has its revisions, and no other folder is there', () => {
  const folders = readdirSync(FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  assert.equal(folders.sort(), Object.keys(FOLDERS).sort());
});
