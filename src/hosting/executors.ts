/** Makes the four executor actors, each around its execution: the author's, or ours. */
import type { ActorHost } from '../actors/actor.ts';
import { spawnExecutor } from '../actors/executor.ts';
import { completionExecution } from '../execution/completions.ts';
import { RequestContext } from '../execution/context.ts';
import {
  type Completable,
  chooseExecution,
  type ExecutionOptions,
  type PromptImplementation,
  type ResourceImplementation,
  type ToolImplementation,
} from '../execution/execution.ts';
import { promptExecution } from '../execution/prompts.ts';
import { resourceExecution } from '../execution/resources.ts';
import type { Labelled } from '../execution/running.ts';
import { type ToolPolicy, toolExecution } from '../execution/tools.ts';
import type { CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult } from '../protocol/types.ts';
import type { CompletionTarget, PromptTarget, ResourceTarget, ToolTarget } from '../registry/serve.ts';

export interface ExecutorsOptions extends ActorHost {
  readonly policy: ToolPolicy;
  readonly executions: ExecutionOptions;
  incident(where: string, error: unknown): string;
}

/** Anything that can be completed: a prompt or a template. */
export type CompletableImplementation = Completable & Labelled;

export function spawnExecutors(options: ExecutorsOptions) {
  const { executions } = options;
  const tools = chooseExecution(executions.tools, toolExecution(options.policy));
  const resources = chooseExecution(executions.resources, resourceExecution());
  const prompts = chooseExecution(executions.prompts, promptExecution());
  const completions = chooseExecution(executions.completions, completionExecution());
  return {
    tools: spawnExecutor<ToolImplementation, ToolTarget, CallToolResult>({
      ...options,
      address: 'executor/tools',
      run(request, implementation, { tool, arguments: args }) {
        const { timeoutMs } = implementation;
        if (timeoutMs !== undefined) request.requests.send({ type: 'allow', request, timeoutMs });
        return tools.execute({ tool, arguments: args, implementation }, new RequestContext(request, options.clock));
      },
      wrap: (result) => ({ kind: 'call', result }),
    }),
    resources: spawnExecutor<ResourceImplementation, ResourceTarget, ReadResourceResult>({
      ...options,
      address: 'executor/resources',
      run: (request, implementation, target) =>
        resources.execute({ ...target, implementation }, new RequestContext(request, options.clock)),
      wrap: (result) => ({ kind: 'read', result }),
    }),
    prompts: spawnExecutor<PromptImplementation, PromptTarget, GetPromptResult>({
      ...options,
      address: 'executor/prompts',
      run: (request, implementation, target) =>
        prompts.execute({ ...target, implementation }, new RequestContext(request, options.clock)),
      wrap: (result) => ({ kind: 'prompt', result }),
    }),
    completions: spawnExecutor<CompletableImplementation, CompletionTarget, CompleteResult>({
      ...options,
      address: 'executor/completions',
      run(request, { completers }, { argument, chosen }) {
        // An argument that nobody completes has no suggestions; that is no error.
        const completer = Object.hasOwn(completers, argument.name) ? completers[argument.name] : undefined;
        if (!completer) return { completion: { values: [], total: 0, hasMore: false } };
        return completions.execute({ argument, chosen, completer }, new RequestContext(request, options.clock));
      },
      wrap: (result) => ({ kind: 'completion', result }),
    }),
  };
}

export type Executors = ReturnType<typeof spawnExecutors>;
