/** The effects of the example's servers, which a test counts. */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A file with a line for each effect. */
const ledger = process.env.APPROVALS_LEDGER;
/** Milliseconds before and after each effect. */
const workMs = Number(process.env.APPROVALS_WORK_MS ?? 0);

/** Has an effect. @returns its description */
export async function effect(what: string): Promise<string> {
  await sleep(workMs);
  if (ledger !== undefined) appendFileSync(ledger, `${what}\n`);
  await sleep(workMs);
  return what;
}
