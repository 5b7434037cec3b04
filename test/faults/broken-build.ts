/** The shape of a broken build: one change of one file, and the test that must find it. */

export interface BrokenBuild {
  /** Of the promise in docs/reliability.md. The title of the test that fails names it. */
  readonly id: string;
  /** The test file that must fail. */
  readonly test: string;
  readonly file: string;
  /** What is in that file once. */
  readonly find: string;
  readonly replace: string;
  /** What is wrong with it. */
  readonly why: string;
  /** The test starts programs from dist. */
  readonly built?: true;
}
