/** The error of URI templates, which programs import. */

/** A malformed template, or values that it cannot expand. The message names the position, the expectation and a fix. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}
