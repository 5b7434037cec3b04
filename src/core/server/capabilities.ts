/**
 * Describes the server and its capabilities: those of everything that was ever registered, and those that the options
 * `offers` and `extensions` name.
 */
import type { Capabilities } from '../messages/offered-capabilities.ts';
import type { ServerDescription } from '../messages/results.ts';
import { settingsIn } from '../protocol/extensions.ts';
import type { JsonObject, JsonValue } from '../protocol/json.ts';
import { TASKS_EXTENSION } from '../protocol/task-params.ts';
import type { Implementation, ServerCapabilities } from '../protocol/types.ts';
import type { ServerOptions } from './options.ts';

type Offered = 'tools' | 'resources' | 'prompts' | 'completions' | 'tasks' | 'events';

export class RegisteredCapabilities implements Capabilities {
  readonly #options: ServerOptions;
  readonly #info: Implementation;
  readonly #kinds: Set<Offered>;
  /** The settings of each extension that something registered uses. */
  readonly #extensions = new Map<string, JsonObject>();
  /** More instructions, by their sources. */
  readonly #instructions = new Map<string, string>();
  offered: ServerCapabilities;

  constructor(options: ServerOptions, info: Implementation) {
    this.#options = options;
    this.#info = info;
    this.#kinds = new Set(options.offers);
    this.offered = this.#made();
  }

  describe(): ServerDescription {
    const instructions = [this.#options.instructions, ...this.#instructions.values()].filter(Boolean).join('\n\n');
    return { info: this.#info, capabilities: this.offered, instructions: instructions || undefined };
  }

  uses(extension: string): boolean {
    return this.#extensions.has(extension);
  }

  /**
   * Records that something of this kind is registered. A capability is never withdrawn, because clients read
   * capabilities only when they connect.
   */
  add(capability: Offered): void {
    if (this.#kinds.has(capability)) return;
    this.#kinds.add(capability);
    if (capability === 'tasks') this.#extensions.set(TASKS_EXTENSION, {});
    this.offered = this.#made();
  }

  /**
   * Records that something registered uses this extension (SEP-2133), and announces it in every revision. Like a
   * capability, an extension is never withdrawn.
   *
   * @param settings the settings to announce; members that were announced before stay
   */
  extend(identifier: string, settings: JsonObject = {}): void {
    this.#extensions.set(identifier, { ...this.#extensions.get(identifier), ...settings });
    this.offered = this.#made();
  }

  /** Adds a paragraph to the instructions for clients that connect from now on. @param text undefined: removes it */
  instruct(source: string, text: string | undefined): void {
    if (text === undefined) this.#instructions.delete(source);
    else this.#instructions.set(source, text);
  }

  #made(): ServerCapabilities {
    return capabilitiesOf(this.#kinds, this.#extensions, this.#options);
  }
}

function capabilitiesOf(
  offered: ReadonlySet<Offered>,
  used: ReadonlyMap<string, JsonObject>,
  options: ServerOptions,
): ServerCapabilities {
  const extensions: Record<string, JsonValue | undefined> = { ...options.extensions };
  for (const [identifier, settings] of used)
    extensions[identifier] = { ...settingsIn(options.extensions, identifier), ...settings };
  return {
    ...(offered.has('tools') ? { tools: { listChanged: true } } : {}),
    ...(offered.has('resources') ? { resources: { subscribe: true, listChanged: true } } : {}),
    ...(offered.has('prompts') ? { prompts: { listChanged: true } } : {}),
    ...(offered.has('completions') ? { completions: {} } : {}),
    ...(offered.has('events') ? { events: {} } : {}),
    // Any handler can log.
    logging: {},
    ...(options.experimental ? { experimental: options.experimental } : {}),
    // Announced in two forms, here and as an extension; each dialect shows one of them.
    ...(offered.has('tasks') ? { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } } : {}),
    ...(options.extensions || used.size > 0 ? { extensions } : {}),
  };
}
