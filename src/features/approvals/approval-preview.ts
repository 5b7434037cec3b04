/** Previews of calls: the result of a read-only tool that gets the same arguments, for the people who decide. */
import { within } from '../../core/kernel/clock.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome } from '../../core/messages/results.ts';
import { messageOf, shortened } from '../../core/protocol/json.ts';
import { abortRequest } from '../../core/requests/active-request.ts';
import { requestOnBehalf } from '../../core/requests/request-on-behalf.ts';
import type { Core } from '../../core/server/feature.ts';
import { toText } from '../../core/store/serialize.ts';

/** Milliseconds in which the tool must answer. */
const PREVIEW_MS = 5_000;
/** Longest preview, in characters. */
const MAX_PREVIEW = 8_000;

/** The requests of previews. */
const previews = new WeakSet<RequestView>();

/** True for the call of a preview, which asks no person. */
export function isPreview(request: RequestView): boolean {
  return previews.has(request);
}

export type Preview = { readonly text: string } | { readonly failed: string };

/**
 * Calls a read-only tool on behalf of the caller of a request, through all gates. It asks no person. Never rejects.
 *
 * @param tool its name
 */
export async function previewCall(
  { elements, stages, system }: Core,
  tool: string,
  caller: RequestView,
  args: Readonly<Record<string, unknown>>,
): Promise<Preview> {
  const definition = elements.catalogues.tools.get(tool)?.definition;
  if (!definition) return { failed: `there is no tool ${tool}` };
  if (definition.annotations?.readOnlyHint !== true)
    return { failed: `the tool ${tool} does not say that it only reads` };
  const operation = { method: 'tools/call', name: tool, arguments: args, input: undefined, task: undefined } as const;
  const { request, answered } = requestOnBehalf(caller, operation, 'tools', `approval/preview/${tool}`);
  previews.add(request);
  stages.route({ type: 'request', request });
  const late = (): Error => new Error(`the tool ${tool} took longer than ${PREVIEW_MS} ms`);
  try {
    return shown(await within(answered, system.clock, PREVIEW_MS, late));
  } catch (error) {
    abortRequest(request, late());
    return { failed: messageOf(error) };
  }
}

function shown(outcome: Outcome): Preview {
  if (!outcome.ok) return { failed: outcome.error.message };
  if (outcome.result.kind !== 'call') return { failed: 'it returned no result' };
  const { content, structuredContent, isError } = outcome.result.result;
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : [`(${block.type})`]));
  if (structuredContent !== undefined && texts.length === 0) texts.push(toText(structuredContent));
  const text = texts.join('\n');
  return isError ? { failed: shortened(text, 300) } : { text: shortened(text, MAX_PREVIEW) };
}
