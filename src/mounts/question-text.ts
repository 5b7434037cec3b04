/**
 * Writes a question in the words of an upstream: each line names it, so that none looks like a line of this server.
 *
 * @example saidBy('shop', 'Which size?') // '[shop] Which size?'
 */
export function saidBy(mount: string, message: string): string {
  return message
    .split(/\r\n|[\n\r\u0085\u2028\u2029]/)
    .map((line) => `[${mount}] ${line}`)
    .join('\n');
}
