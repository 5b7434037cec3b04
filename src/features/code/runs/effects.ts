/** Decides which calls of scripts may change something, and demands that their user approves them. */
import type { ToolCall } from '../../../core/execution/execution.ts';
import type { RuleCondition } from '../../../core/messages/authorization-rule.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import { viaOf } from '../../../core/requests/inner-requests.ts';
import type { Catalogues } from '../../../core/server/elements.ts';
import type { ApprovalPolicy } from '../../approvals/approval-interface.ts';
import { type HintedTool, hintsOf } from '../../durability/tool-hints.ts';

/** True unless a trusted annotation says that the tool only reads. */
export function hasEffect(tool: HintedTool): boolean {
  return hintsOf(tool).readOnlyHint !== true;
}

/** The user may approve further calls of the same tool in the same run. */
const BY_CALLER: ApprovalPolicy = {
  by: 'caller',
  message: 'A script that a model has written makes this call.',
  remember: { for: 3_600_000, max: 100 },
};

/** The demand of `code.effects: 'approve'` on a call; undefined for one that a client makes, or that only reads. */
export function effectCondition(
  tools: Pick<Catalogues['tools'], 'get'>,
): (call: ToolCall, request: RequestView) => RuleCondition | undefined {
  const condition: RuleCondition = { value: BY_CALLER, rule: { name: 'code.effects', version: '1' } };
  return ({ tool }, request) => {
    if (!viaOf(request)) return undefined;
    const element = tools.get(tool.name);
    return element && !hasEffect(element) ? undefined : condition;
  };
}
