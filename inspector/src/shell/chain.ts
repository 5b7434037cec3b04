/** The causes and effects of a record. */
import type { Model } from '../../../src/inspector/model/index.ts';

export function chainOf(model: Model, record: number) {
  return {
    causes: new Set(model.causes.because(record).map(({ seq }) => seq)),
    effects: new Set(model.causes.followed(record).map(({ seq }) => seq)),
  };
}
