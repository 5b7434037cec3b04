/** Code mode: a model calls the tools of mounts from a script. */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import type { Feature } from '../../core/server/feature.ts';
import { CodeMode } from './code-mode.ts';
import { CODE_OPTIONS } from './code-options.ts';
import type { CodeTools } from './functions/code-tools.ts';

export const code: Feature<CodeTools> = {
  name: 'code',
  options: CODE_OPTIONS,
  open(core) {
    const { elements, store } = core;
    let serves = false;
    const mode = new Lazy(() => new CodeMode(core, serves));
    const { shownTool } = elements;
    elements.shownTool = (tool, element) => {
      const shown = shownTool(tool, element);
      return mode.created?.tools.shown(shown, element) ?? shown;
    };
    const holds: CellHolder = {
      /** The store may have runs of another process, although no script has run in this one. */
      async take(cells) {
        if ((await store.list({ kind: 'run', name: core.info.name, cells, limit: 1 })).length > 0)
          await mode.value.take(cells);
      },
      drop: async (cells, flush) => mode.created?.drop(cells, flush),
      working: () => mode.created?.working() ?? [],
    };
    return {
      get service() {
        return mode.value.tools;
      },
      ...(store.durable && { holds }),
      started() {
        serves = true;
        mode.created?.started();
        if (core.options.code !== undefined && !mode.created)
          core.system.log('warning', "the option code has no effect: no mount of this server has expose: 'code'", {
            event: 'program',
          });
      },
      facts: () => (mode.created ? { 'runs of scripts': mode.created.size } : {}),
      finish: async (reason) => mode.created?.stop(reason),
    };
  },
};
