/** Code mode of one server: the tools for a model, and the runs of its scripts, which open with the first of them. */
import type { Context } from '../../core/execution/context.ts';
import { earlierSteps } from '../../core/execution/request-context.ts';
import { failed } from '../../core/execution/tool-result.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import type { Core } from '../../core/server/feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import { checkCalls } from './functions/check-calls.ts';
import type { CallableFunctions } from './functions/code-functions.ts';
import { CodeTools, type ScriptArguments } from './functions/code-tools.ts';
import { bodyOf } from './functions/script-body.ts';
import type { OpenRuns } from './runs/open-runs.ts';

export class CodeMode implements CellHolder {
  readonly tools: CodeTools;
  readonly #runs: Lazy<Promise<OpenRuns>>;
  #opened: OpenRuns | undefined;
  #serves: boolean;

  /** @param serves true if the server serves already */
  constructor(core: Core, serves: boolean) {
    this.#serves = serves;
    const { elements, options, system } = core;
    const settings = options.code ?? {};
    this.tools = new CodeTools({
      ...{ clock: system.clock, catalogue: elements.catalogues.tools, tools: elements.tools() },
      resources: elements.resources(),
      isReadOnly: settings.effects === 'deny',
      seeTools: (request) => core.service(authorization).seeTools(request),
      ruled: () => core.service(authorization).rules.length > 0,
      run: (args, ctx, functions) => this.#run(args, ctx, functions),
      wholeResult: async (run, ctx) => (await this.#runs.value).runs.wholeResult(run, ctx),
    });
    this.#runs = new Lazy(async () => {
      const { openRuns } = await import('./runs/open-runs.ts');
      this.#opened = openRuns(core, settings, (request) => this.tools.functionsOf(request));
      if (this.#serves) this.#opened.runs.started();
      return this.#opened;
    });
  }

  /** Number of runs in memory that have not ended. */
  get size(): number {
    return this.#opened?.runs.size ?? 0;
  }

  async take(cells: readonly number[] | undefined): Promise<void> {
    await (await this.#runs.value).runs.take(cells);
  }

  drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    return this.#opened?.runs.drop(cells, flush) ?? Promise.resolve();
  }

  working(): Iterable<number> {
    return this.#opened?.runs.working() ?? [];
  }

  /** The server serves: runs that need no client continue. */
  started(): void {
    this.#serves = true;
    this.#opened?.runs.started();
  }

  stop(reason: string): void {
    this.#opened?.stop(reason);
  }

  async #run(
    { code: given, resume = '' }: ScriptArguments,
    ctx: Context,
    functions: CallableFunctions,
  ): Promise<CallToolResult> {
    // Models fill in what they do not use with empty texts.
    const code = given === undefined || given.trim() === '' ? undefined : bodyOf(given);
    if (code !== undefined && resume !== '')
      return failed('Pass either "code", the script to run, or "resume", the run to continue. Nothing has run.');
    // A call that runs again has begun its script before: functions may have gone since.
    const problems = code === undefined || earlierSteps(ctx) ? [] : checkCalls(code, functions);
    if (problems.length > 0) {
      const places = problems.map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`);
      return failed(`Nothing of the script has run.\n${places.join('\n')}`);
    }
    const { runs } = await this.#runs.value;
    return runs.run(code === undefined ? { resume } : { code }, ctx, functions);
  }
}
