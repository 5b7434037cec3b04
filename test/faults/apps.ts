/** Broken builds of apps and views. */
import type { BrokenBuild } from './broken-build.ts';

const POLICIES = 'test/features/apps/page-policy.test.ts';
const APPS = 'test/features/apps/apps.test.ts';
const WATCH = 'test/features/apps/watch-tool.test.ts';
const MACHINE = 'test/features/apps/machine-view.test.ts';

export const APP_FAULTS: readonly BrokenBuild[] = [
  {
    id: 'S-65',
    test: MACHINE,
    in: 'InstanceInputs.#askOne',
    find: 'if (inView && !isAskable(open.question, ctx)) return undefined;',
    replace: '',
    why: 'a model is asked for its user, who could answer in a view',
  },
  {
    id: 'S-65',
    test: MACHINE,
    in: 'answer-in-view.ts: answerInView',
    find: '!keys.open(keyIn(ctx.meta), ctx.principal, id)',
    replace: 'id.length === 0',
    why: 'a model answers for its user without a key',
  },
  {
    id: 'S-65',
    test: MACHINE,
    in: 'ViewKeys.open',
    find: 'this.#keys.ring.open(key, [VIEW_META, principal, uri]);',
    replace:
      "this.#keys.ring.open(key, [VIEW_META, principal, uri]).ok ? this.#keys.ring.open(key, [VIEW_META, principal, uri]) : { ok: true, payload: { id: 'any', until: 9e15 } } as const;",
    why: 'the key of another instance or principal opens a view',
  },
  {
    id: 'S-65',
    test: MACHINE,
    in: 'ViewKeys.open',
    find: '&& until > this.#date() ? { id }',
    replace: '? { id }',
    why: 'a key never expires',
  },
  {
    id: 'S-66',
    test: WATCH,
    in: 'Admission.#decide',
    find: 'if (shown) return this.#judgeShown(request, operation, shown, judged);',
    replace: 'if (shown) return judged;',
    why: 'a view waits for a resource that its user may not read',
  },
  {
    id: 'S-66',
    test: 'test/features/apps/tool-view.test.ts',
    in: 'Admission.#judgeUri',
    find: 'if (element?.opener !== undefined) return',
    replace: 'if (element?.opener === uri) return',
    why: 'the page of a hidden tool shows its schemas',
  },
  {
    id: 'S-67',
    test: APPS,
    in: 'problemOfOrigin',
    find: 'if (/^(http|ws)$/i.test(scheme) && !LOOPBACK.test(host))',
    replace: 'if (scheme.length > 9)',
    why: 'a page may load scripts over http',
  },
  {
    id: 'S-67',
    test: APPS,
    in: 'page-policy.ts: policyOf',
    find: "from('script-src', ...hashes, hashOf(KEEPER), ...resourceDomains)",
    replace: "from('script-src', \"'unsafe-inline'\", ...resourceDomains)",
    why: 'a page runs scripts that are not in its text',
  },
  {
    id: 'S-90',
    test: POLICIES,
    in: 'withPolicy',
    find: 'if (head?.childNodes.some(isPolicy)) return text;',
    replace: 'if (/<meta\\b[^>]*http-equiv=.?content-security-policy/i.test(text)) return text;',
    why: 'a page whose title contains the text of a policy gets none',
  },
  {
    id: 'S-90',
    test: POLICIES,
    in: 'outlineOf',
    find: 'const head = html?.childNodes.find(isNamed(',
    replace: 'const head = html?.childNodes.toReversed().find(isNamed(text.length > 0 ? "body" :',
    why: 'a policy in the body, which browsers ignore, counts as one',
  },
  {
    id: 'S-68',
    test: APPS,
    in: 'Catalogue.slice',
    find: "if (element.listed !== undefined && !(forViews && element.listed === 'views')) continue;",
    replace: "if (element.listed === 'none') continue;",
    why: 'clients without views list pages and tools for views',
  },
  {
    id: 'S-69',
    test: WATCH,
    in: 'Watches.begin',
    find: 'if (excess) return excess.message;',
    replace: 'if (excess && principal.length === 0) return excess.message;',
    why: 'views wait in any number of calls',
  },
  {
    id: 'S-69',
    test: MACHINE,
    in: 'Watches.begin',
    find: "if (view !== undefined) this.#ofView.get(view)?.end('replaced');",
    replace: '',
    why: 'each call of one view waits beside its older ones',
  },
];
