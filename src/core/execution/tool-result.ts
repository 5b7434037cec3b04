/** The result of a tool that has failed, and its incident in the operator's log. */
import type { CallToolResult } from '../protocol/types.ts';

/** The incidents of results, which the audit log records and no client receives. */
const INCIDENTS = new WeakMap<object, string>();

/**
 * An error result that the model can read (MCP tools, "Error Handling": tool execution errors).
 *
 * @param incident the id under which the error is in the operator's log
 */
export function failed(message: string, incident?: string): CallToolResult {
  const result: CallToolResult = { content: [{ type: 'text', text: message }], isError: true };
  if (incident !== undefined) INCIDENTS.set(result, incident);
  return result;
}

/** The incident of a result of {@link failed}; undefined for any other result. */
export function incidentOf(result: object): string | undefined {
  return INCIDENTS.get(result);
}
