/**
 * Generations of the author's modules. Each reload begins a new one. All copies of this package in the process share
 * one count.
 */
import { processWide } from '../../core/kernel/global-registry.ts';

/** Process-wide state of module loading. */
interface Loading {
  /** The newest generation. */
  last: number;
  /** The generation of the program itself: 0, or a later one if `troupe dev` loaded it again. */
  program: number;
  /** Resolves when tsx loads TypeScript modules. Undefined before the first module that needs tsx. */
  typescript: Promise<void> | undefined;
  /** True if the loader hook is installed that gives a module's imports the module's generation. */
  readonly inherited: { done: boolean; remove?: () => void };
  /** Called with the path of each module that loads in a later generation than the first. */
  readonly listeners: Set<(path: string) => void>;
}

export const loading: Loading = processWide('troupe.loading', () => ({
  last: 0,
  program: 0,
  typescript: undefined,
  inherited: { done: false },
  listeners: new Set<(path: string) => void>(),
}));

/** Begins the next generation. Its modules are evaluated afresh, together with everything that they import by path. */
export function nextGeneration(): number {
  loading.last += 1;
  return loading.last;
}

/**
 * Calls the listener with the path of each module that loads in a later generation than the first.
 * @returns a function that removes the listener
 */
export function onModule(listener: (path: string) => void): () => void {
  loading.listeners.add(listener);
  return () => void loading.listeners.delete(listener);
}
