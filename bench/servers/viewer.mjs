/** A viewer that reads everything that it is told, and says at the end how much that was. */
const [address, token] = process.argv.slice(2);
const response = await fetch(`${address}/api/stream?viewer=bench&since=0`, {
  headers: { authorization: `Bearer ${token}` },
});
let bytes = 0;
process.on('SIGTERM', () => {
  process.stdout.write(`${bytes}\n`);
  process.exit(0);
});
process.stdout.write('watching\n');
for await (const chunk of response.body) bytes += chunk.length;
