/** Creates the four executor actors, each around its execution: the author's or the default. */

import type { InteractiveRequests } from '../../features/asking/interactive-requests.ts';
import { RequestContext } from '../../features/asking/request-context.ts';
import type { AuditedCalls } from '../../features/guard/audit/audited-calls.ts';
import type { LimitedCalls } from '../../features/guard/limits/limited-calls.ts';
import type { Tasks } from '../../features/tasks/tasks.ts';
import { completionExecution } from '../execution/completions.ts';
import {
  type Completable,
  chooseExecution,
  type ExecutionOptions,
  type PromptImplementation,
  type ResourceExecution,
  type ResourceImplementation,
  type ToolImplementation,
} from '../execution/execution.ts';
import { spawnExecutor } from '../execution/executor.actor.ts';
import type { HandlerErrors } from '../execution/handler-errors.ts';
import { promptExecution } from '../execution/prompts.ts';
import { resourceExecution } from '../execution/resources.ts';
import { ToolExecutor } from '../execution/tool-executor.ts';
import { type ToolPolicy, toolExecution } from '../execution/tools.ts';
import type { ActorSystem } from '../kernel/actor.ts';
import type { RequestView } from '../messages/request-view.ts';
import { isThenable } from '../protocol/json.ts';
import type { CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult } from '../protocol/types.ts';
import type { CompletionTarget, PromptTarget, ResourceTarget, ToolTarget } from '../registry/resolve.ts';
import type { Labelled } from '../requests/running.ts';

export interface ExecutorsOptions {
  readonly system: ActorSystem;
  readonly policy: Omit<ToolPolicy, 'thrown'>;
  readonly errors: HandlerErrors;
  readonly executions: ExecutionOptions;
  readonly interactive: InteractiveRequests;
  readonly tasks: Tasks;
  /** True if a model can answer input requests that its client cannot. */
  answerable(): boolean;
  /** See {@link ExecutorOptions}. */
  admit(request: RequestView, label: string): void;
  readonly audit: AuditedCalls | undefined;
  /** Admits the calls of tools with limits. */
  readonly limited: LimitedCalls;
}

/** Anything with completions: a prompt or a template. */
export type CompletableImplementation = Completable & Labelled;

export function spawnExecutors(options: ExecutorsOptions) {
  const { executions, interactive, tasks, answerable, errors } = options;
  const resumes = (request: RequestView, again: () => void): boolean =>
    request.continues && interactive.continues(request, again);
  const tools = new ToolExecutor({
    execution: chooseExecution(executions.tools, toolExecution({ ...options.policy, thrown: errors.ofTool })),
    interactive,
    tasks,
    modelAnswers: answerable,
    audit: options.audit,
    limited: options.limited,
  });
  const resources: ResourceExecution = chooseExecution(executions.resources, resourceExecution());
  const prompts = chooseExecution(executions.prompts, promptExecution());
  const completions = chooseExecution(executions.completions, completionExecution());
  return {
    /** Reads resources for calls of other methods. */
    reading: resources,
    tools: spawnExecutor<ToolImplementation, ToolTarget, CallToolResult>({
      ...options,
      resumes: tools.takesOver,
      address: 'executor/tools',
      run: tools.run,
      wrap: (result) => ({ kind: 'call', result }),
    }),
    resources: spawnExecutor<ResourceImplementation, ResourceTarget, ReadResourceResult>({
      ...options,
      resumes,
      address: 'executor/resources',
      run(request, implementation, target) {
        const read = resources.execute({ ...target, implementation }, new RequestContext(request, interactive));
        if (!request.guarded) return read;
        return isThenable(read) ? Promise.resolve(read).then(privately) : privately(read);
      },
      wrap: (result) => ({ kind: 'read', result }),
    }),
    prompts: spawnExecutor<PromptImplementation, PromptTarget, GetPromptResult>({
      ...options,
      resumes,
      address: 'executor/prompts',
      run: (request, implementation, target) =>
        prompts.execute({ ...target, implementation }, new RequestContext(request, interactive)),
      wrap: (result) => ({ kind: 'prompt', result }),
    }),
    completions: spawnExecutor<CompletableImplementation, CompletionTarget, CompleteResult>({
      ...options,
      resumes,
      address: 'executor/completions',
      run(request, { completers }, { argument, chosen }) {
        // An argument without a completer has no suggestions; that is not an error.
        const completer = Object.hasOwn(completers, argument.name) ? completers[argument.name] : undefined;
        if (!completer) return { completion: { values: [], total: 0, hasMore: false } };
        return completions.execute({ argument, chosen, completer }, new RequestContext(request, interactive));
      },
      wrap: (result) => ({ kind: 'completion', result }),
    }),
  };
}

/** A shared cache would give the contents to a caller that may not read them, whatever their author says. */
function privately(result: ReadResourceResult): ReadResourceResult {
  return { ...result, cacheScope: 'private' };
}

export type Executors = ReturnType<typeof spawnExecutors>;
