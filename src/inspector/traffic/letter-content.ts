/** Reads what a dead letter or a received delivery has, for a viewer that opens it. */
import { isJsonObject } from '../../core/protocol/json.ts';
import { fromText } from '../../core/store/serialize.ts';
import type { Internals } from '../../features/server/internals.ts';
import type { Server } from '../../features/server/server.ts';

/** The parts of a server that have the contents. */
export interface LetterSource {
  readonly server: Pick<Server, 'deadLetters'>;
  readonly inside: Pick<Internals, 'events' | 'hooks'>;
}

/** Number of letters of the store that are searched. */
const MOST = 1_000;

/**
 * @param ref as `DeadLetters.list` returns it
 * @returns undefined if it is not stored any more
 * @throws {StoreError}
 */
export async function contentOfLetter({ server, inside }: LetterSource, ref: string): Promise<unknown> {
  const [kind, id = '', seq] = ref.split(' ');
  switch (kind) {
    case 'webhook': {
      const content = await inside.hooks()?.content(id);
      return content && (content.body ?? `${content.bytes} bytes`);
    }
    case 'event':
      return eventOf(inside, id, Number(seq));
    default: {
      const letter = (await server.deadLetters(MOST)).find(({ incident }) => incident === id);
      return letter && mailOf(letter.mail);
    }
  }
}

async function eventOf({ events }: LetterSource['inside'], id: string, seq: number): Promise<unknown> {
  for (const { record, event } of events?.webhooks.created?.subscriptions.deadEvents() ?? []) {
    if (record.id !== id || event.seq !== seq) continue;
    const page = await events?.topics.read(record.name, record.by, seq - 1, 1);
    const [first] = page?.events ?? [];
    return first?.seq === seq ? { id: event.id, name: record.name, data: first.data } : undefined;
  }
  return undefined;
}

/** The mail of a letter: an object, or the text as it is. */
function mailOf(mail: string): unknown {
  try {
    const value: unknown = fromText(mail, 'a dead letter');
    if (isJsonObject(value)) return value;
  } catch {
    // A letter may be any text.
  }
  return mail;
}
