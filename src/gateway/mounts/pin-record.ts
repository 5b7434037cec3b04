/** The places of the pins of one mount: a lock file that people review, the server's store, or memory. */
import { readFileSync } from 'node:fs';
import { type CommentedJson, editableJson, readCommentedJson } from '../../core/codec/commented-json.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { isJsonObject, type JsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow, Store } from '../../core/store/store.ts';
import type { Pin, Pins } from './pins.ts';

/** A place for the pins of one mount. */
export interface PinRecord {
  /** @returns undefined if nothing was ever approved. @throws {Error} if the pins cannot be read */
  read(): Promise<Pins | undefined>;
  /** @throws {Error} if they cannot be written */
  write(pins: Pins): Promise<void>;
}

const VERSION = 1;

/** The pins of a mount in a lock file. Processes that share the file keep the pins of each other's mounts. */
export class FilePins implements PinRecord {
  readonly #file: string;
  readonly #mount: string;

  constructor(file: string, mount: string) {
    this.#file = file;
    this.#mount = mount;
  }

  read(): Promise<Pins | undefined> {
    return Promise.resolve().then(() => readLock(this.#file).get(this.#mount));
  }

  write(pins: Pins): Promise<void> {
    return Promise.resolve().then(() => {
      // Read and replaced within one turn, so that mounts of this process cannot overwrite each other.
      const all = new Map(readLock(this.#file)).set(this.#mount, pins);
      const servers = [...all].sort(([one], [other]) => (one < other ? -1 : 1));
      const lock = {
        about: 'Approved definitions of MCP servers. `troupe gateway CONFIG --diff` compares, `--approve NAME` writes.',
        version: VERSION,
        servers: Object.fromEntries(servers.map(([name, pinned]) => [name, toJson(pinned)])),
      };
      replaceFile(this.#file, editableJson(lock), { link: 'follow' });
    });
  }
}

/** Reads all pins of a lock file. @throws {Error} for a file that is not a lock file of this version */
function readLock(file: string): ReadonlyMap<string, Pins> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return new Map();
    throw error;
  }
  const unreadable = (problem: string): Error =>
    new Error(`${file}: ${problem}. Restore the file, or remove it and approve again`);
  let lock: CommentedJson['value'];
  try {
    lock = readCommentedJson(text).value;
  } catch (error) {
    throw unreadable(messageOf(error));
  }
  if (!isJsonObject(lock) || lock.version !== VERSION || !isJsonObject(lock.servers))
    throw unreadable(`expected a lock file of version ${VERSION}`);
  const all = new Map<string, Pins>();
  for (const [name, pins] of Object.entries(lock.servers)) {
    const read = readPins(pins);
    if (!read) throw unreadable(`${name}: expected the lists tools and prompts`);
    all.set(name, read);
  }
  return all;
}

/** The pins of a mount in the store of its server. */
export class StoredPins implements PinRecord {
  readonly #store: Store | undefined;
  readonly #mount: string;
  /** The current time in milliseconds since 1970. */
  readonly #date: () => number;
  /** The pins, if the store loses its data with the process. */
  #pins: Pins | undefined;

  /** @param store undefined, or not durable: the pins are kept in memory */
  constructor(store: Store | undefined, mount: string, date: () => number) {
    this.#store = store;
    this.#mount = mount;
    this.#date = date;
  }

  get #actor(): string {
    return `server/pins/${this.#mount}`;
  }

  async read(): Promise<Pins | undefined> {
    if (!this.#store?.durable) return this.#pins;
    const stored = await this.#store.load(this.#actor);
    if (!stored?.snapshot) return undefined;
    return readPins(fromText(stored.snapshot.data, this.#actor));
  }

  async write(pins: Pins): Promise<void> {
    this.#pins = pins;
    if (!this.#store?.durable) return;
    const base = { id: this.#actor, kind: 'server', name: 'pins', principal: '', status: 'live' } as const;
    const actor: ActorRow = { ...base, created: this.#date(), expires: undefined };
    await this.#store.commit([
      { type: 'actor', actor },
      { type: 'snapshot', actor: this.#actor, version: String(VERSION), data: toText(pins) },
    ]);
  }
}

/** A server without events has the same entry as ever. */
function toJson({ tools, prompts, events }: Pins): JsonObject {
  const list = (pins: readonly Pin[]): JsonValue => pins.map((pin) => ({ ...pin }));
  return { tools: list(tools), prompts: list(prompts), ...(events.length > 0 && { events: list(events) }) };
}

function readPins(value: JsonValue | undefined): Pins | undefined {
  if (!isJsonObject(value)) return undefined;
  const tools = readList(value.tools);
  const prompts = readList(value.prompts);
  const events = value.events === undefined ? [] : readList(value.events);
  return tools && prompts && events && { tools, prompts, events };
}

/** Entries of another shape approve nothing. */
function readList(value: JsonValue | undefined): readonly Pin[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((entry: JsonValue) => {
    if (!isJsonObject(entry)) return [];
    const { name, sha256, definition } = entry;
    if (typeof name !== 'string' || typeof sha256 !== 'string' || !isJsonObject(definition)) return [];
    return [{ name, sha256, definition }];
  });
}
