/** What the server says of itself, and which capabilities it offers: those of what was ever registered, and those that were promised. */
import type { ServerDescription } from '../messages/results.ts';
import type { ServerOptions } from '../options.ts';
import { TASKS_EXTENSION } from '../protocol/task-params.ts';
import type { Implementation, ServerCapabilities } from '../protocol/types.ts';

type Offered = 'tools' | 'resources' | 'prompts' | 'completions' | 'tasks';

export interface Capabilities {
  tell(): ServerDescription;
  offers(capability: keyof ServerCapabilities): boolean;
  /** Something of this kind is registered now. What was offered once stays offered: clients learn of capabilities only when they connect. */
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
    // Said in two ways, of which each dialect shows one.
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
