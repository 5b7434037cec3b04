/** The cell of the subscriptions to callbacks of a principal: its limits and the verifications of its endpoints are in one process. */
import { sha256 } from '../../../core/kernel/sha256.ts';
import { CELLS } from '../../../core/protocol/cell.ts';

/** The same at every node, and also if a cluster gets another secret. */
export function cellOfSubscriber(principal: string): number {
  return Buffer.from(sha256(`webhooks of ${principal}`, 'hex'), 'hex').readUInt16BE() % CELLS;
}
