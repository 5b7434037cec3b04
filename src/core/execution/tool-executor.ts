/** Decides how a call of a tool runs: recovered, again, as a task, or as a request; and whether a model may answer for its client. */

import type { InteractiveRequests } from '../../features/asking/interactive-requests.ts';
import { RequestContext, type RunOptions } from '../../features/asking/request-context.ts';
import type { AuditedCalls } from '../../features/guard/audit/audited-calls.ts';
import type { LimitedCalls } from '../../features/guard/limits/limited-calls.ts';
import type { StatusAtCrash } from '../../features/tasks/task-entry.ts';
import type { Tasks } from '../../features/tasks/tasks.ts';
import type { RecordedReply } from '../messages/client-input.ts';
import type { RequestView } from '../messages/request-view.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { isThenable } from '../protocol/json.ts';
import type { CallToolResult, Tool } from '../protocol/types.ts';
import { turnAway } from '../requests/active-request.ts';
import type { ToolCall, ToolExecution, ToolImplementation } from './execution.ts';

export interface ToolExecutorOptions {
  /** Runs the handlers: the default execution, or the author's. */
  readonly execution: ToolExecution;
  readonly interactive: InteractiveRequests;
  readonly tasks: Tasks;
  /** True if a model can currently answer input requests that its client cannot. */
  modelAnswers(): boolean;
  /** Records calls; undefined without an audit. */
  readonly audit: AuditedCalls | undefined;
  /** Admits the calls of tools with limits. */
  readonly limited: LimitedCalls;
}

export class ToolExecutor {
  readonly #options: ToolExecutorOptions;

  constructor(options: ToolExecutorOptions) {
    this.#options = options;
  }

  /**
   * Takes over a call that continues an earlier one, or with which a model answers. `again` runs the call after all.
   *
   * @returns false if the call must run
   */
  readonly takesOver = (request: RequestView, again: () => void): boolean => {
    const { interactive, modelAnswers } = this.#options;
    return (
      (request.continues && interactive.continues(request, again)) || (modelAnswers() && interactive.answers(request))
    );
  };

  /** @throws {ProtocolError} if the call must not run twice, or as its client asks, or if its audit is not possible */
  readonly run = (
    request: RequestView,
    implementation: ToolImplementation,
    target: Omit<ToolCall, 'implementation'>,
  ): CallToolResult | Promise<CallToolResult> => {
    if (implementation.limits === undefined && this.#options.audit === undefined)
      return this.#execute(request, implementation, target);
    return this.#guarded(request, implementation, target);
  };

  /** Runs a call of a tool with limits, or with an audit: what a limit rejects has no record of its start. */
  #guarded(
    request: RequestView,
    implementation: ToolImplementation,
    target: Omit<ToolCall, 'implementation'>,
  ): CallToolResult | Promise<CallToolResult> {
    const { audit, limited, tasks } = this.#options;
    const { input, limits } = implementation;
    const { tool, arguments: args } = target;
    const execute = () => this.#execute(request, implementation, target);
    if (!limits) return audit ? audit.run(request, tool, args, execute) : execute();
    let ran = false;
    const work = () => {
      ran = true;
      return audit ? audit.run(request, tool, args, execute) : execute();
    };
    const counted = request.recorded?.id !== undefined || tasks.recovery?.statusOf(request) !== undefined;
    const ended = (): void => {
      if (ran) return;
      turnAway(request);
      audit?.notRun(request);
    };
    try {
      const result = limited.run({ request, tool: tool.name, limits, input, arguments: args, counted, work });
      if (isThenable(result)) return Promise.resolve(result).finally(ended);
      ended();
      return result;
    } catch (error) {
      ended();
      throw error;
    }
  }

  #execute(
    request: RequestView,
    implementation: ToolImplementation,
    { tool, arguments: args }: Omit<ToolCall, 'implementation'>,
  ): CallToolResult | Promise<CallToolResult> {
    const { execution, interactive, tasks, modelAnswers } = this.#options;
    const { timeoutMs } = implementation;
    const call: ToolCall = { tool, arguments: args, implementation };
    const status = tasks.recovery?.statusOf(request);
    if (status) {
      checkRerun(status, request.recorded, implementation, tool);
      const ctx = new RequestContext(request, interactive, timeoutMs, LASTING);
      tasks.recovery?.attach(request, ctx);
      return execution.execute(call, ctx);
    }
    if (request.recorded?.id !== undefined && implementation.rerun === false) throw notAgain(tool.name);
    const mode = tasks.modeOf(request, implementation.task, tool.name);
    // Only its client can provide input for a task.
    const model = mode.as !== 'task' && modelAnswers() ? modelFor(implementation) : undefined;
    if (mode.as === 'request')
      return execution.execute(call, new RequestContext(request, interactive, timeoutMs, model && { model }));
    return tasks.run(request, mode, { call, execution, timeoutMs, model });
  }
}

/** A call that another process may continue. */
const LASTING: RunOptions = Object.freeze({ lasting: true });
const STRUCTURED = Object.freeze({ structured: true });
const UNSTRUCTURED = Object.freeze({ structured: false });

/** Describes how to ask the model that calls this tool. */
function modelFor({ output }: ToolImplementation): RunOptions['model'] {
  return output === undefined ? UNSTRUCTURED : STRUCTURED;
}

/** The error for a tool that must not run twice for one call, although its process ended. */
function notAgain(name: string): ProtocolError {
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `tool "${name}" can only be resumed where it stopped, and the process that waited for this answer has ended: check its effects before you call it again`,
  );
}

/**
 * Decides whether a call may run again after its process ended. The progress of a working handler is unknown, so it runs
 * again only if that is known to be safe: its tool declares it, or it has recorded steps and was therefore written for it. A
 * statechart resumes from its checkpoint. A handler that waited for an answer may run again, because every handler that asks
 * must tolerate that.
 *
 * @throws {ProtocolError} if the call may not run again
 */
function checkRerun(
  status: StatusAtCrash,
  recorded: RecordedReply | undefined,
  { rerun }: ToolImplementation,
  { name, annotations = {} }: Tool,
): void {
  if (rerun === true) return;
  const { steps = {}, checkpoint } = recorded ?? {};
  const resumes = Object.keys(steps).length > 0 || checkpoint !== undefined;
  const harmless = annotations.readOnlyHint === true || annotations.idempotentHint === true || resumes;
  if (rerun === undefined && (status === 'input_required' || harmless)) return;
  throw new ProtocolError(
    ErrorCode.InternalError,
    `the process restarted while tool "${name}" ran this task, and the outcome is unknown. Find out what was done before you call it again`,
  );
}
