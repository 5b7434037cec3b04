/**
 * Cells: the 1,024 parts into which all lasting data is divided, and the ids that carry their cell.
 *
 * An id has exactly {@link ID_WITH_CELL} characters: two for the cell, then 22 random ones. A client may send any text as an
 * id, so that reading a cell can fail.
 */

/** Number of cells, for ever: clients hold ids that contain their cell. */
export const CELLS = 1_024;

/** Number of random characters in an id: 132 bits, because some ids are the only protection of what they name. */
export const RANDOM_LENGTH = 22;
/** Number of characters of an id that carries its cell. */
const ID_WITH_CELL = 2 + RANDOM_LENGTH;
/** A SHA-256 in base64url. */
const HASH_LENGTH = 43;

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** The values of the alphabet's characters by their code; -1 for all other characters. */
const VALUES = Int8Array.from({ length: 128 }, (_, code) => ALPHABET.indexOf(String.fromCharCode(code)));

/**
 * Returns the two characters of a cell: its 12 bits in base64url, highest first.
 *
 * @throws {RangeError} if it is not an integer from 0 to 1,023
 * @example nameOfCell(65) // 'BB'
 */
export function nameOfCell(cell: number): string {
  if (!Number.isInteger(cell) || cell < 0 || cell >= CELLS)
    throw new RangeError(`cell: expected an integer from 0 to ${CELLS - 1}, got ${cell}`);
  return ALPHABET.charAt(cell >> 6) + ALPHABET.charAt(cell & 63);
}

/**
 * Puts the cell in front of the random part of an id.
 *
 * @param random 22 characters
 * @throws {RangeError} for another cell than 0 to 1,023, or a random part of another length: `cellIn` would not find the cell
 * @example withCell(1, randomId(22)) // 'ABV1StGXR8…'
 */
export function withCell(cell: number, random: string): string {
  if (random.length !== RANDOM_LENGTH)
    throw new RangeError(`random part of an id: expected ${RANDOM_LENGTH} characters, got ${random.length}`);
  return nameOfCell(cell) + random;
}

/** Returns the cell of an id; undefined for an id of another length, or whose first characters are no cell. */
export function cellIn(id: string): number | undefined {
  return id.length === ID_WITH_CELL ? cellAt(id, 0) : undefined;
}

/**
 * Returns the cell of an actor in the store; undefined if it belongs to no cell, as the server's own data does.
 *
 * @example cellOfActor('handle/order/ABV1StGXR8…') // 1
 * @example cellOfActor('session/AB.<SHA-256 of its id>') // 1
 */
export function cellOfActor(actor: string): number | undefined {
  const at = actor.lastIndexOf('/') + 1;
  const length = actor.length - at;
  if (length === ID_WITH_CELL)
    return actor.startsWith('handle/') ||
      actor.startsWith('task/') ||
      actor.startsWith('question/') ||
      actor.startsWith('run/') ||
      actor.startsWith('schedule/') ||
      actor.startsWith('hook/') ||
      actor.startsWith('webhook/')
      ? cellAt(actor, at)
      : undefined;
  return length === HASH_LENGTH + 3 && actor[at + 2] === '.' && actor.startsWith('session/')
    ? cellAt(actor, at)
    : undefined;
}

/**
 * Names the actor of a session in the store by a hash, because its id is secret.
 *
 * @param cell undefined for an id that no server has created: there is no such actor
 * @param hash the SHA-256 of its id, in base64url
 * @example sessionActor(1, hash) // 'session/AB.<hash>'
 */
export function sessionActor(cell: number | undefined, hash: string): string {
  return `session/${cell === undefined ? '' : `${nameOfCell(cell)}.`}${hash}`;
}

/** True if an id carries one of these cells. */
export function isOfCells(cells: ReadonlySet<number>, id: string): boolean {
  const cell = cellIn(id);
  return cell !== undefined && cells.has(cell);
}

/** True if an actor in the store belongs to one of these cells. */
export function isActorOfCells(cells: ReadonlySet<number>, actor: string): boolean {
  const cell = cellOfActor(actor);
  return cell !== undefined && cells.has(cell);
}

/** Returns a test for actors of these cells; of all actors, also those without a cell, if `cells` is undefined. */
export function ofCells(cells: readonly number[] | undefined): (actor: string) => boolean {
  if (!cells) return () => true;
  const asked = new Set(cells);
  return (actor) => isActorOfCells(asked, actor);
}

function cellAt(text: string, at: number): number | undefined {
  const [high, low] = [VALUES[text.charCodeAt(at)] ?? -1, VALUES[text.charCodeAt(at + 1)] ?? -1];
  const cell = (high << 6) | low;
  return high < 0 || low < 0 || cell >= CELLS ? undefined : cell;
}
