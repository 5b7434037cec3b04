/** The effects of the example's servers, which a test counts. */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A file with a line for each effect. */
const ledger = process.env.APPROVALS_LEDGER;
/** Milliseconds of work before and after each effect. */
const beforeMs = Number(process.env.APPROVALS_BEFORE_MS ?? 0);
const afterMs = Number(process.env.APPROVALS_AFTER_MS ?? 0);

/** Has an effect. @returns its description */
export async function effect(what: string): Promise<string> {
  await sleep(beforeMs);
  if (ledger !== undefined) appendFileSync(ledger, `${what}\n`);
  await sleep(afterMs);
  return what;
}
