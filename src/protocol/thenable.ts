/** Recognizes awaitable values: promises of this realm or another, and promises of libraries. */

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (value instanceof Promise) return true;
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
