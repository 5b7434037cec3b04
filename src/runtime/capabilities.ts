/**
 * Describes the server and its capabilities: those of everything that was ever registered, and those that the option
 * `offers` names.
 */
import type { ServerDescription } from '../messages/results.ts';
import type { ServerOptions } from '../options.ts';
import { TASKS_EXTENSION } from '../protocol/task-params.ts';
import type { Implementation, ServerCapabilities } from '../protocol/types.ts';

type Offered = 'tools' | 'resources' | 'prompts' | 'completions' | 'tasks';

export interface Capabilities {
  tell(): ServerDescription;
  offers(capability: keyof ServerCapabilities): boolean;
  /**
   * Records that something of this kind is registered. A capability is never withdrawn, because clients read
   * capabilities only when they connect.
   */
  add(capability: Offered): void;
}

export function describeServer(options: ServerOptions, info: Implementation): Capabilities {
  const offered = new Set<Offered>(options.offers);
  const capabilities = (): ServerCapabilities => ({
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
  });
  let known = capabilities();
  return {
    tell: () => ({ info, capabilities: known, instructions: options.instructions }),
    offers: (capability) => known[capability] !== undefined,
    add(capability) {
      if (offered.has(capability)) return;
      offered.add(capability);
      known = capabilities();
    },
  };
}
