/** The floor: a bare loop that parses each line, and answers an echo with hand-made JSON. No server can be faster by much. */
if (process.channel) await import('./telling.mjs');

let rest = '';
process.stdin.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop() ?? '';
  let out = '';
  for (const line of lines) {
    const { id, params } = JSON.parse(line);
    if (id === undefined) continue;
    out += `${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: params?.arguments?.text ?? '' }] } })}\n`;
  }
  process.stdout.write(out);
});
