/** Parts that are loaded after the page: soon after, or when they are first shown. */
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { say } from '../store/state.ts';

/** Delay before a part is loaded without being shown: later the server may have stopped. */
const SOON_MS = 1_000;

/** A component that shows another one once it is loaded. */
export function later<P extends object>(what: string, load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const loaded = signal<ComponentType<P> | undefined>(undefined);
  let coming: Promise<void> | undefined;
  const come = (failed: () => void): void => {
    coming ??= load()
      .then((part) => {
        loaded.value = part;
      })
      .finally(() => {
        coming = undefined;
      });
    coming.catch(failed);
  };
  setTimeout(() => come(() => {}), SOON_MS);
  return (props) => {
    const Part = loaded.value;
    useEffect(() => {
      if (!loaded.peek())
        come(() => say(`${what} could not be loaded. Check that the server is running, then open it again.`));
    }, []);
    return Part ? <Part {...props} /> : null;
  };
}
