/** Code mode: a model calls the tools of mounts from a script. */

import { Lazy } from '../../core/kernel/lazy.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import type { Feature } from '../../core/server/feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import { CODE_OPTIONS, RUNS } from './code-options.ts';
import { CodeTools } from './functions/code-tools.ts';
import type { OpenRuns } from './runs/open-runs.ts';

export const code: Feature<CodeTools> = {
  name: 'code',
  options: CODE_OPTIONS,
  open(core) {
    const { elements, options, stages, store } = core;
    const settings = options.code ?? {};
    let opened: OpenRuns | undefined;
    let serves = false;
    const runs = new Lazy(async () => {
      const { openRuns } = await import('./runs/open-runs.ts');
      opened = openRuns(core, settings, (request) => tools.value.functionsOf(request));
      if (serves) opened.runs.started();
      return opened.runs;
    });
    const tools = new Lazy(
      () =>
        new CodeTools({
          ...{ stages, catalogue: elements.catalogues.tools, tools: elements.tools() },
          isReadOnly: settings.effects === 'deny',
          seeTools: (request) => core.service(authorization).seeTools(request),
          ruled: () => core.service(authorization).rules.length > 0,
          run: async ({ code: script, resume }, ctx, functions) => {
            if ((script === undefined) === (resume === undefined))
              return { content: [{ type: 'text', text: EITHER }], isError: true };
            const given = resume === undefined ? { code: script ?? '' } : { resume };
            return (await runs.value).run(given, ctx, functions);
          },
        }),
    );
    const { shownTool } = elements;
    elements.shownTool = (tool, element) => {
      const shown = shownTool(tool, element);
      return tools.created?.shown(shown, element) ?? shown;
    };
    const held: CellHolder = {
      /** The store may have runs of another process, although no script has run in this one. */
      async take(cells) {
        if (!runs.created && (await store.list({ kind: 'run', name: RUNS, cells, limit: 1 })).length === 0) return;
        await (await runs.value).take(cells);
      },
      drop: (cells) => opened?.runs.drop(cells) ?? Promise.resolve(),
      working: () => opened?.runs.working() ?? [],
    };
    return {
      get service() {
        return tools.value;
      },
      ...(store.durable && { holds: held }),
      started() {
        serves = true;
        opened?.runs.started();
      },
      facts: () => (opened ? { 'runs of scripts': opened.runs.size } : {}),
      finish: async (reason) => opened?.stop(reason),
    };
  },
};

const EITHER = 'Pass either "code", the script to run, or "resume", the run to continue.';
