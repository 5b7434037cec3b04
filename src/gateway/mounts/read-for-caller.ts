/** Reads a resource of this server for the caller of a tool, with the rights of that caller. */
import type { Context } from '../../core/execution/context.ts';
import { requestContextOf } from '../../core/execution/request-context.ts';
import type { Stages } from '../../core/execution/stages.ts';
import { type Clock, within } from '../../core/kernel/clock.ts';
import { ToolError } from '../../core/protocol/errors.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { abortRequest } from '../../core/requests/active-request.ts';
import { requestOnBehalf } from '../../core/requests/request-on-behalf.ts';

/** The bytes of a resource. */
export interface ReadBytes {
  readonly bytes: Buffer;
  readonly type: string | undefined;
}

/** Milliseconds in which the resource must be read. */
const READ_MS = 30_000;

/** @throws {ToolError} for a resource that the caller cannot read, or that has not one content */
export async function readForCaller(
  stages: Pick<Stages, 'route'>,
  clock: Clock,
  ctx: Context,
  uri: string,
): Promise<ReadBytes> {
  const operation = { method: 'resources/read', uri, input: undefined } as const;
  const { request, answered } = requestOnBehalf(requestContextOf(ctx).current, operation, 'resources', 'mount/upload');
  stages.route({ type: 'request', request });
  const late = (): Error => new Error(`it took longer than ${READ_MS} ms`);
  const cannot = (why: string): ToolError =>
    new ToolError(`the resource ${uri.slice(0, 200)} cannot be sent: ${why}. Nothing was sent`);
  try {
    const outcome = await within(answered, clock, READ_MS, late, ctx.signal);
    if (!outcome.ok) throw cannot(outcome.error.message);
    const contents = outcome.result.kind === 'read' ? outcome.result.result.contents : [];
    const [content, ...others] = contents.filter((each) => contents.length === 1 || each.uri === uri);
    if (!content || others.length > 0) throw cannot(`expected one content, got ${contents.length}`);
    const { mimeType: type } = content;
    if ('blob' in content) return { bytes: Buffer.from(content.blob, 'base64'), type };
    return { bytes: Buffer.from(content.text), type };
  } catch (error) {
    abortRequest(request, late());
    if (error instanceof ToolError || ctx.signal.aborted) throw error;
    throw cannot(messageOf(error));
  }
}
