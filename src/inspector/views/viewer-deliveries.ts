/** The deliveries of webhooks for viewers with control: the last ones, the body of one on demand, and one that is sent again. */
import type { RegisteredHooks } from '../../features/hooks/registered-hooks.ts';
import type { DeliveriesView } from '../calls/call-messages.ts';
import type { Plain } from '../frames.ts';
import { InputError } from '../http/viewer-input.ts';
import { plainOf, type SecretFinder } from '../redaction/plain-data.ts';

const MOST = 50;
const GONE = 'delivery: it is not stored any more';

/** @throws {InputError} */
export async function deliveriesView(hooks: RegisteredHooks): Promise<DeliveriesView> {
  const [last, dead] = await Promise.all([hooks.list({ limit: MOST }), hooks.list({ state: 'dead', limit: MOST })]);
  return { deliveries: [...last, ...dead.filter(({ ref }) => !last.some((each) => each.ref === ref))] };
}

/** The body without secrets, cut if it is long. @throws {InputError} */
export async function bodyView(hooks: RegisteredHooks, ref: string, redactor: SecretFinder): Promise<{ body: Plain }> {
  const found = await hooks.content(ref);
  if (!found) throw new InputError(404, GONE);
  return { body: plainOf(found.body ?? `${found.bytes} bytes`, redactor) };
}

/** @returns the outcome in words. @throws {InputError} */
export async function redeliver(hooks: RegisteredHooks, ref: string): Promise<string> {
  const again = await hooks.again(ref);
  if (again === undefined) throw new InputError(404, `${GONE}, or too many wait`);
  return `sent again as ${again}`;
}
