/** Webhooks: other services deliver events to handlers of a server, which run at least once for each. */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { RegisteredHooks } from './registered-hooks.ts';

/** The webhooks of a server; undefined while there is none, unless they are to be created. */
export interface HookService {
  (create: true): RegisteredHooks;
  (): RegisteredHooks | undefined;
}

export const hooks: Feature<HookService> = {
  name: 'hooks',
  open(core) {
    const { store, limits } = core;
    const registered = new Lazy(() => new RegisteredHooks(core));
    let serves = false;
    const begin = (): void => {
      if (serves) registered.created?.table.begin();
    };
    function service(create: true): RegisteredHooks;
    function service(): RegisteredHooks | undefined;
    function service(create?: true): RegisteredHooks | undefined {
      if (create) void registered.value;
      begin();
      return registered.created;
    }
    return {
      service,
      ...(store.durable && {
        holds: {
          /** The store may have deliveries of another process, although this one has no webhook yet. */
          async take(cells) {
            if (!registered.created && (await store.list({ kind: 'hook', cells, limit: 1 })).length === 0) return;
            await registered.value.table.take(cells);
            begin();
          },
          drop: async (cells, flush) => registered.created?.table.drop(cells, flush),
          working: () => registered.created?.table.working() ?? [],
        },
      }),
      started() {
        serves = true;
        begin();
      },
      hosts: () => ({ webhook: (path: string) => registered.created?.find(path) }),
      facts: () => (registered.created ? { 'open deliveries of webhooks': registered.created.table.open } : {}),
      finish: async () => registered.created?.table.stop(limits.graceMs),
    };
  },
};
