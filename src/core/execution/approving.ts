/** The approvals of a handler's context: what it asks people for, and what it learns of an approval. */
import { ToolError } from '../protocol/errors.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';
import type { CallToolResult } from '../protocol/types.ts';

/** The part of a handler that people must approve. Features add who they are. */
export interface ApprovalRequest {
  /** The subject, in at most 100 characters, such as `Refund order 17`. */
  readonly title: string;
  /** More for the people who decide, in at most 1,000 characters. */
  readonly message?: string | undefined;
  /** The data that people see, beside the arguments of the call. The approval is bound to it. */
  readonly show?: JsonObject | undefined;
}

/** An approval, for the handler that runs with it. */
export interface CallApproval {
  readonly id: string;
  /** The principals who have approved; empty if a remembered approval has. */
  readonly approvers: readonly string[];
  /** The last reason that one of them has given. */
  readonly reason?: string | undefined;
  /** The remembered approval that approved it. */
  readonly grant?: string | undefined;
}

/**
 * Thrown by `ctx.approve` if the call must not go on: it was denied, has expired, or waits for people. The message is for the model,
 * which learns from it what to do. Do not catch it, unless you undo something and throw it again.
 */
export class NotApproved extends ToolError {
  /** The result for the model. */
  readonly result: CallToolResult;

  constructor(result: CallToolResult) {
    const [block] = result.content;
    super(isObject(block) && block.type === 'text' ? String(block.text) : 'not approved');
    this.result = result;
  }
}
