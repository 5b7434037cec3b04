/**
 * Describes the server and its capabilities: those of everything that was ever registered, and those that the option
 * `offers` names.
 */
import type { Capabilities } from '../messages/offered-capabilities.ts';
import type { ServerDescription } from '../messages/results.ts';
import type { ServerOptions } from '../options.ts';
import { TASKS_EXTENSION } from '../protocol/task-params.ts';
import type { Implementation, ServerCapabilities } from '../protocol/types.ts';

type Offered = 'tools' | 'resources' | 'prompts' | 'completions' | 'tasks';

export class RegisteredCapabilities implements Capabilities {
  readonly #options: ServerOptions;
  readonly #info: Implementation;
  readonly #offered: Set<Offered>;
  #capabilities: ServerCapabilities;

  constructor(options: ServerOptions, info: Implementation) {
    this.#options = options;
    this.#info = info;
    this.#offered = new Set(options.offers);
    this.#capabilities = capabilitiesOf(this.#offered, options);
  }

  describe(): ServerDescription {
    return { info: this.#info, capabilities: this.#capabilities, instructions: this.#options.instructions };
  }

  offers(capability: keyof ServerCapabilities): boolean {
    return this.#capabilities[capability] !== undefined;
  }

  /**
   * Records that something of this kind is registered. A capability is never withdrawn, because clients read
   * capabilities only when they connect.
   */
  add(capability: Offered): void {
    if (this.#offered.has(capability)) return;
    this.#offered.add(capability);
    this.#capabilities = capabilitiesOf(this.#offered, this.#options);
  }
}

function capabilitiesOf(offered: ReadonlySet<Offered>, options: ServerOptions): ServerCapabilities {
  return {
    ...(offered.has('tools') ? { tools: { listChanged: true } } : {}),
    ...(offered.has('resources') ? { resources: { subscribe: true, listChanged: true } } : {}),
    ...(offered.has('prompts') ? { prompts: { listChanged: true } } : {}),
    ...(offered.has('completions') ? { completions: {} } : {}),
    // Any handler can log.
    logging: {},
    ...(options.experimental ? { experimental: options.experimental } : {}),
    // Announced in two forms; each dialect shows one of them.
    ...(offered.has('tasks') ? { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } } : {}),
    ...(options.extensions || offered.has('tasks')
      ? { extensions: { ...options.extensions, ...(offered.has('tasks') ? { [TASKS_EXTENSION]: {} } : {}) } }
      : {}),
  };
}
