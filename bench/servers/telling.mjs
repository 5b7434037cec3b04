/** What every server of the benchmark tells the process that measures it: its url, and over IPC its processor time and its weight. */

/** How often garbage is collected before the process is weighed: what finalizers let go of goes with the next. */
const COLLECTIONS = 4;

/** The questions that one server answers and the others do not know. */
const answers = new Map();

/**
 * Answers a question of the process that measures. A question is a name, and words after it.
 *
 * @param {(...words: string[]) => unknown} answer of plain data, or a promise of it
 */
export function answering(question, answer) {
  answers.set(question, answer);
}

process.on('message', async (question) => {
  if (question === 'cpu') return process.send?.(process.cpuUsage());
  const [name, ...words] = String(question).split(' ');
  const answer = answers.get(name);
  if (answer) return process.send?.(await answer(...words));
  for (let times = 0; times < COLLECTIONS; times += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  process.send?.({ heap: heapUsed + external, rss });
});
// Asking keeps no server alive.
process.channel?.unref();

/**
 * What the command line asks for: `SERVER stdio|http|stateless TOOLS`.
 *
 * @returns the names of the tools: `echo`, `size`, `count`, and more of no use, as many as were asked for
 */
export function asked() {
  const [way = 'stdio', tools = '3'] = process.argv.slice(2);
  const names = ['echo', 'size', 'count'];
  while (names.length < Number(tools)) names.push(`tool_${names.length + 1}`);
  return { way, names: names.slice(0, Number(tools)) };
}

/** What the description of every tool says. */
export const DESCRIPTION = 'Answers the text';

/** How often a handler reports before it lets others have their turn, as one does that works between its reports. */
export const EACH_TURN = 16;

/** Waits until others had their turn. */
export function turn() {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Says where an HTTP server is, and ends it when whoever started it has gone. */
export function served(url, stop = () => process.exit(0)) {
  process.stdout.write(`${url}\n`);
  process.stdin.resume().once('end', stop);
}
