/**
 * Recordings: the backlog as one document, and a file that grows as things happen and is readable even after its
 * process was killed.
 */
import { constants, type FileHandle, open } from 'node:fs/promises';
import { isObject } from '../../core/protocol/json.ts';
import { type CoverageFrame, FORMAT, type Frame, type HelloFrame, type Recording } from '../frames.ts';
import { jsonTextOf, readText } from '../inspector-json.ts';
import { Model } from '../model/index.ts';
import type { Observation } from './observation.ts';
import { type Sink, Viewer } from './viewer.ts';

const HEAD = `{"format":"troupe-recording","version":${FORMAT},"frames":[`;
/** The beginning of recordings of all versions. */
const START = '{"format":"troupe-recording",';
const TAIL = '\n]}\n';
/** Maximum length of a file. Later frames are not recorded, and the operator's log has a warning. */
const MAX_BYTES = 256 * 1024 * 1024;
/** Share of the file's limit that all catalogues together may take: one that changes all the time must not fill the file. */
const CATALOGUE_SHARE = 1 / 8;
/** Longest line that is searched at the end of a file that is continued. */
const MAX_LINE = 4 * 1024 * 1024;
/** Maximum number of bytes that wait for the disk before the recording lags. */
const MAX_WAITING = 4 * 1024 * 1024;
/** Maximum number of records in memory while a recording is checked. */
const CHECKED_RECORDS = 1_000;

/** The catalogue of a server, as a frame. */
interface Catalogue {
  readonly version: number;
  text(): string;
}

/** The backlog as one recording. A server without a viewer is observed for this alone. */
export function recordingOf(
  observation: Observation,
  hello: () => HelloFrame,
  catalogue?: Catalogue,
  coverage?: CoverageFrame,
): string {
  const frames: string[] = [];
  const viewer = new Viewer({
    observation,
    everything: true,
    hello: () => ({ ...hello(), live: false, control: false }),
    sink: {
      write(frame) {
        frames.push(typeof frame === 'string' ? frame : Buffer.from(frame).toString('utf8'));
        return true;
      },
      end() {},
    },
  });
  observation.flushAll();
  viewer.end();
  // After the hello, which is the first frame of every recording.
  if (catalogue) frames.splice(1, 0, catalogue.text());
  if (coverage) frames.push(jsonTextOf(coverage));
  return `${HEAD}\n${frames.join(',\n')}${TAIL}`;
}

export interface RecordOptions {
  readonly observation: Observation;
  /** Recorded at the start, and again after changes. */
  readonly catalogue?: Catalogue;
  hello(): HelloFrame;
  /** Continues the recording of another process, if the file has one. */
  readonly append?: boolean;
  /** Maximum length of the file in bytes. Default: 256 MiB. */
  readonly maxBytes?: number;
  /** Called with the reason when recording stops early. */
  stopped(why: string): void;
}

/** A recording in progress. */
export interface Recorder {
  /** Ends the recording, and resolves when the file is complete. */
  close(): Promise<void>;
}

/**
 * Records into a file, with the contexts of all statecharts. One frame is one line, so that the file is readable after
 * its process was killed ({@link readRecording}). Only the owner may read the file.
 *
 * @throws any error of opening the file; {Error} for an existing file of another kind, which stays unchanged
 */
export async function recordInto(file: string, options: RecordOptions): Promise<Recorder> {
  const { O_CREAT, O_NONBLOCK, O_RDWR } = constants;
  // Non-blocking, so that a pipe opens at once.
  const handle = await open(file, O_RDWR | O_CREAT | (O_NONBLOCK ?? 0), 0o600);
  try {
    await checkOurs(handle, file);
    if (!options.append) await handle.truncate();
    // An existing file may be readable by others.
    await handle.chmod(0o600);
    return new FileRecorder(handle, options, options.append ? await endOf(handle) : 0);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** A typing error must not overwrite another file, and a device must not get another mode. @throws {Error} */
async function checkOurs(handle: FileHandle, file: string): Promise<void> {
  const found = await handle.stat();
  const { buffer, bytesRead } = found.isFile()
    ? await handle.read(Buffer.alloc(START.length), 0, START.length, 0)
    : { buffer: Buffer.from('?'), bytesRead: 1 };
  // The previous process may have been killed during its first line.
  if (!START.startsWith(buffer.toString('utf8', 0, bytesRead)))
    throw new Error(
      `expected a new file or a recording to replace, got ${file}, which is neither. Choose another file.`,
    );
}

class FileRecorder implements Sink, Recorder {
  readonly #file: FileHandle;
  readonly #options: RecordOptions;
  readonly #viewer: Viewer;
  #waiting: (string | Uint8Array)[] = [];
  #waitingBytes = 0;
  #bytes: number;
  /** The position of the next write. */
  #at: number;
  #writing: Promise<void> | undefined;
  #over = false;
  /** The version of the last recorded catalogue, and the bytes of all of them. */
  #catalogue = -1;
  #catalogueBytes = 0;

  /** @param bytes the length of the existing file */
  constructor(file: FileHandle, options: RecordOptions, bytes: number) {
    this.#file = file;
    this.#options = options;
    this.#bytes = bytes;
    this.#at = bytes;
    const { observation, hello } = options;
    this.#viewer = new Viewer({
      observation,
      sink: this,
      everything: true,
      hello: () => ({ ...hello(), live: false, control: false }),
    });
  }

  write(frame: string | Uint8Array): boolean {
    if (this.#over) return true;
    const { maxBytes = MAX_BYTES } = this.#options;
    if (this.#bytes + frame.length + 64 > maxBytes) {
      this.#stop(`recording stopped at its limit of ${maxBytes} bytes`);
      return true;
    }
    const before = this.#bytes === 0 ? `${HEAD}\n` : ',\n';
    this.#put(before);
    this.#put(frame);
    this.#describe(maxBytes);
    this.#writing ??= this.#drain();
    return this.#waitingBytes < MAX_WAITING;
  }

  end(): void {}

  /** Records what the server offers if that has changed. */
  #describe(maxBytes: number): void {
    const { catalogue } = this.#options;
    if (!catalogue || catalogue.version === this.#catalogue) return;
    this.#catalogue = catalogue.version;
    const text = catalogue.text();
    const { length } = text;
    if (this.#catalogueBytes + length > maxBytes * CATALOGUE_SHARE || this.#bytes + length + 64 > maxBytes) return;
    this.#catalogueBytes += length;
    this.#put(',\n');
    this.#put(text);
  }

  async close(): Promise<void> {
    this.#options.observation.flushAll();
    this.#viewer.end();
    if (this.#bytes > 0 && !this.#over) this.#put(TAIL);
    this.#over = true;
    this.#writing ??= this.#drain();
    await this.#writing;
    await this.#file.close();
  }

  #put(text: string | Uint8Array): void {
    this.#waiting.push(text);
    this.#waitingBytes += text.length;
    this.#bytes += text.length;
  }

  #stop(why: string): void {
    this.#put(TAIL);
    this.#over = true;
    this.#options.stopped(why);
    this.#writing ??= this.#drain();
  }

  /** Writes everything that waits, and everything that is added meanwhile. */
  async #drain(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const parts = this.#waiting.map((part) => (typeof part === 'string' ? Buffer.from(part) : part));
        this.#waiting = [];
        this.#waitingBytes = 0;
        const bytes = Buffer.concat(parts);
        await this.#file.write(bytes, 0, bytes.length, this.#at);
        this.#at += bytes.length;
      }
    } catch (error) {
      this.#over = true;
      this.#waiting = [];
      this.#options.stopped(
        `the recording cannot be written: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
    this.#writing = undefined;
    if (this.#viewer.waits) this.#viewer.drained();
  }
}

/**
 * Cuts a file after its last complete frame, so that others can follow: its process may have been killed in the middle
 * of a line.
 *
 * @returns the new length; 0 for a file that is no recording, or has no frame
 */
async function endOf(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const from = Math.max(0, size - MAX_LINE);
  const bytes = Buffer.alloc(size - from);
  await file.read(bytes, 0, bytes.length, from);
  const head = Buffer.alloc(HEAD.length);
  await file.read(head, 0, head.length, 0);
  let end = bytes.length;
  let keep = 0;
  // Searches backwards for the last line that is a frame.
  while (head.toString() === HEAD && end > 0 && keep === 0) {
    const begin = bytes.lastIndexOf('\n', end - 1) + 1;
    const line = bytes.subarray(begin, end).toString('utf8').replace(/,$/, '');
    const frame = readText(line);
    if (frame && isFrame(frame.value)) keep = from + begin + Buffer.byteLength(line);
    end = begin - 1;
  }
  await file.truncate(keep);
  return keep;
}

/**
 * Reads a recording: the complete document, or the lines that were written.
 *
 * @throws {TypeError} for a text that is no recording, or a recording of another version
 */
export function readRecording(text: string): Recording {
  const read = readText(text);
  if (read) {
    if (!isRecording(read.value)) throw new TypeError('expected a recording of troupe, got other JSON');
    if (read.value.version !== FORMAT)
      throw new TypeError(`expected a recording of version ${FORMAT}, got version ${String(read.value.version)}`);
    return read.value;
  }
  const [head = '', ...lines] = text.split('\n');
  if (head !== HEAD) throw new TypeError(`expected a recording of version ${FORMAT}, got other text`);
  const frames = lines.flatMap((line) => {
    // The last line may be incomplete.
    const frame = readText(line.replace(/,$/, ''));
    return frame && isFrame(frame.value) ? [frame.value] : [];
  });
  return { format: 'troupe-recording', version: FORMAT, frames };
}

/**
 * Checks that a text is a recording that the page can show, without holding its frames.
 *
 * @returns the number of its frames
 * @throws {TypeError} for a text that is no recording, or one without valid frames
 */
export function checkRecording(text: string): number {
  const model = new Model({ maxRecords: CHECKED_RECORDS });
  let frames = 0;
  const take = (frame: Frame): void => {
    if (frames === 0 && frame.type !== 'hello')
      throw new TypeError(`the recording is damaged: expected the hello frame first, got ${frame.type}`);
    frames += 1;
    try {
      model.take(frame);
    } catch {
      throw new TypeError(`the recording is damaged: frame ${frames} (${frame.type}) is invalid`);
    }
  };
  if (!text.startsWith(`${HEAD}\n`)) for (const frame of readRecording(text).frames) take(frame);
  else
    for (let from = HEAD.length + 1, to = 0; to !== -1; from = to + 1) {
      to = text.indexOf('\n', from);
      const frame = readText(text.slice(from, to === -1 ? text.length : to).replace(/,$/, ''));
      if (frame && isFrame(frame.value)) take(frame.value);
    }
  if (frames === 0) throw new TypeError('the recording is damaged: expected frames, got none');
  return frames;
}

function isRecording(value: unknown): value is Recording {
  return isObject(value) && value.format === 'troupe-recording' && Array.isArray(value.frames);
}

function isFrame(value: unknown): value is Frame {
  return isObject(value) && typeof value.type === 'string';
}
