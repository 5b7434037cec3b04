/** The check of the option `code`, which loads with the first server that has it. */
import * as option from '../../core/protocol/option-rows.ts';

export const problemOfCode: option.Check = option.group('an object such as { effects: "approve", threads: 2 }', {
  effects: option.oneOf('approve', 'allow', 'deny'),
  threads: option.whole(1, 64),
  ...option.each(['waitMs', 'sliceMs', 'runMs'], option.duration),
  memoryBytes: option.count,
});
