/** The page of a sign-in did not lead back to the client in time. */
export class NoSignIn extends Error {
  override readonly name = 'NoSignIn';
}
