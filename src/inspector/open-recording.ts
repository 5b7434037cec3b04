/** Opens the page of the inspector with a recording, without a server. */
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Clock } from '../core/kernel/clock.ts';
import { listen } from './http/listener.ts';
import { PageFiles } from './http/page-files.ts';
import { RecordingRoutes } from './http/recording-routes.ts';
import { newToken } from './http/token-guard.ts';
import type { OpenInspector } from './open-inspector.ts';
import { checkRecording } from './stream/recording.ts';

interface OpenRecordingOptions {
  /** The port on 127.0.0.1; 0 for any free port. */
  readonly port: number;
  readonly clock: Clock;
  log(message: string): void;
}

/** Maximum length of a recording in bytes, also after decompression: the page holds it as one text. */
const MAX_BYTES = 400 * 1024 * 1024;

/**
 * Opens a page on 127.0.0.1 that shows a recording, plain or compressed by gzip. The listener keeps no process alive.
 *
 * @throws any error of reading the file; {TypeError} for a file that is no recording; {Error} if the port is in use
 */
export async function openRecording(
  file: string,
  { port, clock, log }: OpenRecordingOptions,
): Promise<OpenInspector & { readonly frames: number }> {
  const text = await readRecordingFile(file);
  const frames = checkRecording(text);
  const token = newToken();
  const files = new PageFiles();
  const routes = new RecordingRoutes(basename(file), text);
  const listener = await listen({ port, token, clock, files, routes, frames: undefined, log });
  return { frames, url: `http://127.0.0.1:${listener.port}/#${token}`, close: () => listener.close() };
}

async function readRecordingFile(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > MAX_BYTES) throw new TypeError(`expected a recording of at most ${MAX_BYTES} bytes, got ${size}`);
  const bytes = await readFile(file);
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.toString('utf8');
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_BYTES }).toString('utf8');
  } catch (error) {
    throw new TypeError(
      `it is compressed, and cannot be decompressed: ${error instanceof Error ? error.message : error}`,
    );
  }
}
