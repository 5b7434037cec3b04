/** The states in which an actor of Troupe waits for a client. */

const WAITING = new Set([
  'asking',
  'collecting',
  'suspended',
  'task awaiting input',
  'pending',
  'sent',
  'input_required',
  'paused',
  'initializing',
  // Of scripts: also for other people, a task or a time.
  'waiting for client',
  'waiting for approval',
  'waiting for task',
  'waiting for clock',
  // In recordings of earlier versions.
  'awaiting input',
  'asked',
]);

/** @param state the text of a state, possibly with a count at its end */
export function isWaiting(state: string): boolean {
  return WAITING.has(state.replace(/ \(\d+\)$/, ''));
}
