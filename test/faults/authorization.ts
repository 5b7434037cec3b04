/** Broken builds of the admission. */
import type { BrokenBuild } from './broken-build.ts';

const SCOPES = 'test/features/guard/authorization/scopes.test.ts';
const RULES = 'test/features/guard/authorization/rules.test.ts';
const LISTS = 'test/features/guard/authorization/lists.test.ts';
const ENDS = 'test/features/guard/authorization/ends.test.ts';

export const AUTHORIZATION: readonly BrokenBuild[] = [
  {
    id: 'G-03',
    test: 'test/features/guard/authorization/owners.test.ts',
    in: 'TaskTable.own',
    find: 'if (!entry || entry.record.owner !== ownerOf(client)) return undefined;',
    replace: 'if (!entry) return undefined;',
    why: 'a task answers every principal with the scopes of its call',
  },
  {
    id: 'G-04',
    test: SCOPES,
    in: 'RuleVerdict.demand',
    find: 'if (!this.#granted.includes(scope)) this.missing.push(scope);',
    replace: 'if (!scopes.some((each) => this.#granted.includes(each))) this.missing.push(scope);',
    why: 'scope_any: one of the scopes is enough',
  },
  {
    id: 'G-04',
    test: SCOPES,
    in: 'Admission.#reject',
    find: "const scope = needed.join(' ');",
    replace: "const scope = missing.join(' ');",
    why: 'a client that asks for the scopes of the challenge and no others loses those that it had',
  },
  {
    id: 'G-04',
    test: RULES,
    in: 'PostExchange.admitted',
    find: 'if (this.undecided) return;',
    replace: '',
    why: 'admit_after_stream: the stream begins before a rule has decided',
  },
  {
    id: 'G-04',
    test: SCOPES,
    in: 'Admission.#decide',
    find: 'return needing(request, tasks.neededFor(client, operation.taskId) ?? NO_SCOPES);',
    replace: 'return undefined;',
    why: 'a look at a task needs no scopes',
  },
  {
    id: 'G-04',
    test: RULES,
    in: 'Admission.#decide',
    find: 'return needed.length === 0 ? judged : demanding(request, judged, needed);',
    replace: 'return judged;',
    why: 'who lacks the scopes of a call continues it through the tool for answers',
  },
  {
    id: 'G-05',
    test: RULES,
    in: 'Admission.#judgeUri',
    find: 'variables, canonicalUri(uri),',
    replace: 'NO_ARGUMENTS, uri,',
    why: 'a rule sees another spelling of a URI than the handler',
  },
  {
    id: 'G-05',
    test: RULES,
    in: 'Run.#serve',
    find: 'request.guarded && !isDeepStrictEqual',
    replace: '!request.guarded && !isDeepStrictEqual',
    why: 'toctou: the handler receives other arguments than the rules',
  },
  {
    id: 'S-92',
    test: RULES,
    in: 'operations.ts: ruledArguments',
    find: 'return { ...resolved, [argument.name]: argument.value };',
    replace: 'return { [argument.name]: argument.value, ...(argument.name === undefined ? resolved : {}) };',
    why: 'a completer gets arguments that no rule has seen',
  },
  {
    id: 'G-05',
    test: RULES,
    in: 'RuleVerdict.fail',
    find: 'fail(incident: string): void { this.denied = true;',
    replace: 'fail(incident: string): void {',
    why: 'fail_open: a rule that fails allows',
  },
  {
    id: 'G-05',
    test: RULES,
    in: 'resolve.ts: serveTools',
    find: 'const element = request.hidden ? undefined : catalogue.get(operation.name);',
    replace: 'const element = catalogue.get(operation.name);',
    why: 'a hidden tool can be called',
  },
  {
    id: 'G-06',
    test: LISTS,
    in: 'resolve.ts: pages',
    find: 'const known = view ? (ofView.get(view) ?? new Map<Cursor, Page>()) : everything;',
    replace: 'const known = everything;',
    why: 'list_shared: callers of different views get the same page',
  },
  {
    id: 'G-06',
    test: LISTS,
    in: 'resolve.ts: PRIVATE',
    find: "const PRIVATE = { scope: 'private' } as const;",
    replace: 'const PRIVATE = {} as const;',
    why: 'a shared cache may keep a list that depends on its caller',
  },
  {
    id: 'G-07',
    test: ENDS,
    in: 'Sweeper.#expire',
    find: 'if (one.endsAt <= now) one.expire(options.retryMs, now);',
    replace: 'if (one.endsAt < Number.NEGATIVE_INFINITY) one.expire(options.retryMs, now);',
    why: 'a stream outlives its token',
  },
];
