/** The start and the end of every peer: `PEER stdio|http`. A peer that serves HTTP prints its address, and ends with its stdin. */

export const [way = 'stdio'] = process.argv.slice(2);

/** Prints the address of an HTTP server, and ends the process when its parent closes its stdin. */
export function served(url) {
  process.stdout.write(`${url}\n`);
  process.stdin.resume().once('end', () => process.exit(0));
}

/** The form of the tool `ask`. */
export const FORM = {
  message: 'Which size?',
  requestedSchema: {
    type: 'object',
    properties: { size: { type: 'string', enum: ['small', 'large'], default: 'large' } },
    required: ['size'],
  },
};

/** The sampling request of the tool `sample`. */
export const SAMPLING = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Name a tea.' } }],
  maxTokens: 20,
};

export function text(value) {
  return { content: [{ type: 'text', text: String(value) }] };
}

/** The number of calls of `wait` that were cancelled: the tool `cancelled` returns it. */
export const seen = { cancelled: 0 };

/** Resolves when the signal is aborted, and counts it. */
export function aborted(signal) {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      seen.cancelled += 1;
      resolve(text('cancelled'));
    });
  });
}
