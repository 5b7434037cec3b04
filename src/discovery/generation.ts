/** Generations of the author's modules: each reload begins one, and every copy of this package in the process counts the same ones. */
import { processWide } from '../global-registry.ts';

/** What loading modules must remember for the whole process. */
interface Loading {
  /** The last generation that was begun. */
  last: number;
  /** The generation of the program itself: 0, unless `troupe dev` loaded it again. */
  program: number;
  /** Settled once modules written in TypeScript can be loaded; undefined until the first is asked for. */
  typescript: Promise<void> | undefined;
  /** The hook that hands a module's generation on to its imports is in place. */
  readonly inherited: { done: boolean };
  /** Hear of each module that is loaded in a later generation than the first, by its path. */
  readonly listeners: Set<(path: string) => void>;
}

export const loading: Loading = processWide('troupe.loading', () => ({
  last: 0,
  program: 0,
  typescript: undefined,
  inherited: { done: false },
  listeners: new Set<(path: string) => void>(),
}));

/** Begins the next generation: what is loaded in it is evaluated afresh, with everything that it imports by path. */
export function nextGeneration(): number {
  loading.last += 1;
  return loading.last;
}

/** Hears the path of each module that is loaded in a later generation than the first, until the returned function is called. */
export function onModule(listener: (path: string) => void): () => void {
  loading.listeners.add(listener);
  return () => void loading.listeners.delete(listener);
}
