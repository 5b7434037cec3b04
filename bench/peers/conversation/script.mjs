/** The data that every peer offers to the tests of the client, and its answers. */

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
