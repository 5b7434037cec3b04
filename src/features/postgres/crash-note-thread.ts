/** The thread that stores the mark of a process that ends itself. It sleeps until then, and has no connection. */
import { workerData } from 'node:worker_threads';
import { SharedMark } from '../../core/store/shared-mark.ts';
import type { CrashNoteStart } from './crash-notes.ts';
import { PostgresAddress } from './postgres-address.ts';
import { PostgresConnection } from './postgres-connection.ts';

/** Milliseconds for the connection, and for the statement. */
const WITHIN_MS = 1_500;

const { url, schema, shared }: CrashNoteStart = workerData;
const mark = new SharedMark(shared);
const text = mark.toPublish();

async function store(): Promise<void> {
  const options = { connectMs: WITHIN_MS, answerMs: WITHIN_MS, prepares: false, application: 'troupe crash note' };
  const connection = await PostgresConnection.open(new PostgresAddress(url), options);
  await connection.query(
    {
      name: 'crash',
      text: `INSERT INTO ${schema}.crash(mark, at) VALUES($1, extract(epoch FROM clock_timestamp()) * 1000)`,
    },
    [text],
  );
}

void store()
  // The crash is then not counted.
  .catch(() => {})
  .finally(() => mark.published());
