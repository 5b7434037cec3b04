/** Code mode: a model calls the tools of mounts from a script. */
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import { CODE_OPTIONS } from './code-options.ts';
import { CodeTools } from './functions/code-tools.ts';

export const code: Feature<CodeTools> = {
  name: 'code',
  options: CODE_OPTIONS,
  open(core) {
    const { elements, options, stages } = core;
    const tools = new Lazy(
      () =>
        new CodeTools({
          ...{ stages, catalogue: elements.catalogues.tools, tools: elements.tools() },
          isReadOnly: options.code?.effects === 'deny',
          seeTools: (request) => core.service(authorization).seeTools(request),
          ruled: () => core.service(authorization).rules.length > 0,
          run: () => Promise.reject(new Error('scripts cannot run yet')),
        }),
    );
    const { shownTool } = elements;
    elements.shownTool = (tool, element) => {
      const shown = shownTool(tool, element);
      return tools.created?.shown(shown, element) ?? shown;
    };
    return {
      get service() {
        return tools.value;
      },
    };
  },
};
