/** Reads a state of the server again and again while a view shows it. */

export interface Poll {
  /** Reads now, after a read that is under way: an older answer never replaces a newer one. */
  look(): Promise<unknown>;
  /** Reads at once and from then on, except while the page is hidden. @returns a function that ends it */
  begin(): () => void;
}

/** A poll whose next read begins so many milliseconds after the answer to the last one: a slow server gets one at a time. */
export function poll(read: () => Promise<unknown>, everyMs: number): Poll {
  let last: Promise<unknown> = Promise.resolve();
  const look = (): Promise<unknown> => {
    // The next read may succeed.
    last = last.then(read).catch(() => {});
    return last;
  };
  return {
    look,
    begin: () => {
      let ended = false;
      const run = async (): Promise<void> => {
        while (!ended) {
          if (!document.hidden) await look();
          await new Promise((done) => setTimeout(done, everyMs));
        }
      };
      void run();
      return () => {
        ended = true;
      };
    },
  };
}
