/** Parts that are not there when the page begins: they come soon after, or when they are first shown. */
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { say } from '../store/state.ts';

/** After so long they come by themselves: the server may be gone when somebody wants them. */
const SOON_MS = 1_000;

/** A component that shows another, once that is loaded. */
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
      if (!loaded.peek()) come(() => say(`${what} could not be loaded: is the server still there? Show it again.`));
    }, []);
    return Part ? <Part {...props} /> : null;
  };
}
