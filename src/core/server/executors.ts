/** Creates the four executor actors, each around its execution: the author's or the default. */

import { executeCompletion } from '../execution/completions.ts';
import {
  type Completable,
  type CompletionExecution,
  chooseExecution,
  type ExecutionOptions,
  type PromptExecution,
  type PromptImplementation,
  type ResourceExecution,
  type ResourceImplementation,
  type ToolExecution,
  type ToolImplementation,
} from '../execution/execution.ts';
import { spawnExecutor } from '../execution/executor.actor.ts';
import type { HandlerErrors } from '../execution/handler-errors.ts';
import { executePrompt } from '../execution/prompts.ts';
import { type ContextHost, RequestContext, requestContextOf } from '../execution/request-context.ts';
import { executeRead } from '../execution/resources.ts';
import type { Stages, ToolRun } from '../execution/stages.ts';
import { type ToolPolicy, toolExecution } from '../execution/tools.ts';
import type { ActorSystem } from '../kernel/actor.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { isThenable } from '../protocol/json.ts';
import type { CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult } from '../protocol/types.ts';
import type { CompletionTarget, PromptTarget, ResourceTarget, ToolTarget } from '../registry/resolve.ts';
import type { Labelled } from '../requests/running.ts';

interface ExecutorsOptions {
  readonly system: ActorSystem;
  readonly policy: Omit<ToolPolicy, 'thrown'>;
  readonly errors: HandlerErrors;
  readonly executions: ExecutionOptions;
  readonly stages: Stages;
  readonly contexts: ContextHost;
}

/** Anything with completions: a prompt or a template. */
type CompletableImplementation = Completable & Labelled;

export function spawnExecutors(options: ExecutorsOptions) {
  const { executions, contexts, stages, errors } = options;
  const inner = chooseExecution(executions.tools, toolExecution({ ...options.policy, thrown: errors.ofTool }));
  const tools: ToolExecution = {
    execute(call, ctx) {
      if (stages.handlers.length === 0 && call.implementation.rerun !== false) return inner.execute(call, ctx);
      return stages.handle(call, ctx, (run) => {
        if (run === 'first') requestContextOf(ctx).begin();
        if (call.implementation.rerun === false && requestContextOf(ctx).earlier !== undefined)
          throw notAgain(call.tool.name);
        return inner.execute(call, ctx);
      });
    },
  };
  const call = ({ request, call }: ToolRun) => {
    return tools.execute(call, new RequestContext(request, contexts, call.implementation));
  };
  // Their modules load with the first use.
  const resources = chooseExecution<ResourceExecution>(executions.resources, {
    execute: (call, ctx) => executeRead(call, ctx),
  });
  const prompts = chooseExecution<PromptExecution>(executions.prompts, {
    execute: (call, ctx) => executePrompt(call, ctx),
  });
  const completions = chooseExecution<CompletionExecution>(executions.completions, {
    execute: (call, ctx) => executeCompletion(call, ctx),
  });
  return {
    /** Runs calls of tools, within the gates around their handlers. */
    calling: tools,
    /** Reads resources for calls of other methods. */
    reading: resources,
    tools: spawnExecutor<ToolImplementation, ToolTarget, CallToolResult>({
      ...options,
      address: 'executor/tools',
      run: (request, implementation, { tool, arguments: args }) =>
        stages.call({ request, call: { tool, arguments: args, implementation } }, call),
      wrap: (result) => ({ kind: 'call', result }),
    }),
    resources: spawnExecutor<ResourceImplementation, ResourceTarget, ReadResourceResult>({
      ...options,
      address: 'executor/resources',
      run(request, implementation, target) {
        const read = resources.execute({ ...target, implementation }, new RequestContext(request, contexts));
        if (!request.guarded) return read;
        return isThenable(read) ? Promise.resolve(read).then(privately) : privately(read);
      },
      wrap: (result) => ({ kind: 'read', result }),
    }),
    prompts: spawnExecutor<PromptImplementation, PromptTarget, GetPromptResult>({
      ...options,
      address: 'executor/prompts',
      run: (request, implementation, target) =>
        prompts.execute({ ...target, implementation }, new RequestContext(request, contexts)),
      wrap: (result) => ({ kind: 'prompt', result }),
    }),
    completions: spawnExecutor<CompletableImplementation, CompletionTarget, CompleteResult>({
      ...options,
      address: 'executor/completions',
      run(request, { completers }, { argument, chosen }) {
        // An argument without a completer has no suggestions; that is not an error.
        const completer = Object.hasOwn(completers, argument.name) ? completers[argument.name] : undefined;
        if (!completer) return { completion: { values: [], total: 0, hasMore: false } };
        return completions.execute({ argument, chosen, completer }, new RequestContext(request, contexts));
      },
      wrap: (result) => ({ kind: 'completion', result }),
    }),
  };
}

/** The error for a tool that must not run twice for one call, although its process ended. */
function notAgain(name: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `tool "${name}" can only be resumed where it stopped, and the process that waited for this answer has ended: check its effects before you call it again`,
  );
}

/** A shared cache would give the contents to a caller that may not read them, whatever their author says. */
function privately(result: ReadResourceResult): ReadResourceResult {
  return { ...result, cacheScope: 'private' };
}
