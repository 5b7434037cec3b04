/** Part of the soak: 100,000 questions that nobody answers. Fails where memory is not flat. */
import { abandonQuestions } from '../test/features/asking/abandoning.ts';

const QUESTIONS = 100_000;
/** The ids of the last 100,000 that are over are remembered, each in 100 bytes or so. */
const MOST = 12_000_000;

const started = performance.now();
const { asked, waiting, grown } = await abandonQuestions(QUESTIONS);
const seconds = ((performance.now() - started) / 1_000).toFixed(0);
process.stdout.write(
  `${asked} questions abandoned in ${seconds} s: ${waiting} wait, heap ${(grown / 1_024).toFixed(0)} KiB more after the last ${(0.8 * QUESTIONS).toLocaleString('en')}\n`,
);
if (asked !== QUESTIONS || grown > MOST) process.exitCode = 1;
