/** Mounts: other servers as parts of this one. */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { SIGN_IN_PATH } from '../../core/transports/transport.ts';
import type { OfferedMounts } from './offered-mounts.ts';
import { mountsOf } from './server-mounts.ts';

export const mounts: Feature<OfferedMounts> = {
  name: 'mounts',
  open(core) {
    const { elements } = core;
    const offered = new Lazy(() => mountsOf(core));
    elements.nameHint = (kind, name) => offered.created?.nameHint(kind, name) ?? '';
    const { shownTool } = elements;
    elements.shownTool = (tool, element) => {
      const shown = shownTool(tool, element);
      return offered.created?.shown(shown, element) ?? shown;
    };
    return {
      get service() {
        return offered.value;
      },
      listens: {
        listened: (uri) => offered.created?.listened(uri),
        unlistened: (uri) => offered.created?.unlistened(uri),
      },
      ready: () => offered.created?.ready() ?? Promise.resolve(),
      unready: () => (offered.created?.missing ? 'no catalogue' : undefined),
      pages: { [SIGN_IN_PATH]: async (request) => offered.created?.signIns?.page(request) },
      stop: () => offered.created?.close(),
    };
  },
};
