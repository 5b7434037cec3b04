/** The shape of a broken build: one change of one declaration, and the test that must find it. */

export interface BrokenBuild {
  /** Of the promise in docs/reliability.md. The title of the test that fails names it. */
  readonly id: string;
  /** The test file that must fail. */
  readonly test: string;
  /**
   * The declaration that is broken: a function, a variable, a class or `Class.member`. `FILE.ts: NAME` where several files
   * declare the name.
   */
  readonly in: string;
  /** What is in that declaration once, white space aside. */
  readonly find: string;
  readonly replace: string;
  /** What is wrong with it. */
  readonly why: string;
  /** The test starts programs from dist. */
  readonly built?: true;
}
