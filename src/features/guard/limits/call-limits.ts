/** The option `limits` of a tool: how often, how much and how many at a time one principal may call it. */
import { isObject } from '../../../core/protocol/json.ts';
import * as option from '../../../core/protocol/option-rows.ts';

declare module '../../../core/registry/define.ts' {
  interface ToolFeatureOptions<Args> {
    /**
     * Limits of the calls of each principal: rate, calls at a time, daily use. A call beyond a limit gets a result with
     * `isError` that tells the model which limit it is and when to retry. See docs/guard.md, "Limits".
     */
    readonly limits?: CallLimits<Args> | undefined;
  }
}

declare module '../../../core/execution/execution.ts' {
  interface ToolImplementation {
    /** Undefined for a tool without limits. */
    readonly limits?: CompiledLimits | undefined;
  }
}

/** The limits of a tool for each principal. All anonymous clients are one principal. Absent members do not limit. */
export interface CallLimits<Args = unknown> {
  /** Calls a second on average, above 0. At most one of `perSecond` and `perMinute`. */
  readonly perSecond?: number | undefined;
  /** Calls a minute on average, above 0. */
  readonly perMinute?: number | undefined;
  /** Calls that may come at once, at least 1. Default: those of one second or of one minute, rounded up. */
  readonly burst?: number | undefined;
  /** Calls that may run at a time, at least 1. Eight more wait for their turn. */
  readonly concurrent?: number | undefined;
  /** Calls a day, at least 1. The day begins at midnight UTC. A durable store keeps the count over a restart. */
  readonly perDay?: number | undefined;
  /**
   * The cost of one call, at least 0, instead of 1: it counts for `perSecond`, `perMinute` and `perDay`. Receives the
   * checked arguments; a call with invalid arguments costs 1. If it throws, the call fails.
   */
  cost?(args: Args): number;
}

/** The limits of a tool in the form that its calls use. */
export interface CompiledLimits {
  readonly rate: Rate | undefined;
  readonly concurrent: number | undefined;
  readonly perDay: number | undefined;
  readonly cost: ((args: unknown) => number) | undefined;
}

interface Rate {
  readonly perSecond: number;
  readonly burst: number;
  /** The limit in words, such as `at most 10 a minute`. */
  readonly words: string;
  /** The option that sets it. */
  readonly option: 'perSecond' | 'perMinute';
}

const rate = option.expected('a number above 0', (value) => Number.isFinite(value) && Number(value) > 0);
const ROWS: option.Rows<CallLimits> = {
  perSecond: rate,
  perMinute: rate,
  burst: option.count,
  concurrent: option.count,
  perDay: option.count,
  cost: option.functional,
};
const among = option.group('an object such as { perMinute: 10 }', ROWS);

/** Finds what is wrong with the limits of a tool. @returns undefined for limits that are valid */
export function problemOfLimits(limits: unknown): string | undefined {
  const problem = among(limits);
  if (problem !== undefined || !isObject(limits)) return problem;
  const { perSecond, perMinute, burst } = limits;
  if (perSecond !== undefined && perMinute !== undefined) return 'expected perSecond or perMinute, got both';
  if (burst !== undefined && perSecond === undefined && perMinute === undefined)
    return 'burst: expected perSecond or perMinute beside it, got none';
  const { concurrent, perDay, cost } = limits;
  if ([perSecond, perMinute, concurrent, perDay].some((limit) => limit !== undefined)) return undefined;
  const named = cost === undefined ? 'none' : 'only cost, which limits nothing';
  // Options that are `undefined` are not given: a program may set its limits in production only.
  return Object.keys(limits).some((name) => name !== 'cost')
    ? undefined
    : `expected perSecond, perMinute, concurrent or perDay, got ${named}`;
}

/** True for the name of a limit, such as `perMinute`. */
export function isCallLimit(name: string): boolean {
  return Object.hasOwn(ROWS, name);
}

/** @param limits without a problem */
export function compileLimits(limits: CallLimits | undefined): CompiledLimits | undefined {
  if (limits === undefined) return undefined;
  const { perSecond, perMinute, concurrent, perDay, cost } = limits;
  if (perSecond === undefined && perMinute === undefined && concurrent === undefined && perDay === undefined)
    return undefined;
  return { rate: rateOf(limits), concurrent, perDay, cost: cost && ((args) => cost.call(limits, args)) };
}

function rateOf({ perSecond, perMinute, burst }: CallLimits): Rate | undefined {
  const each = perSecond ?? perMinute;
  if (each === undefined) return undefined;
  const most = burst ?? Math.max(1, Math.ceil(each));
  const option = perSecond === undefined ? 'perMinute' : 'perSecond';
  const unit = perSecond === undefined ? 'minute' : 'second';
  const atOnce = most === each ? '' : `, ${most} at once`;
  return {
    perSecond: perSecond === undefined ? each / 60 : each,
    burst: most,
    words: `at most ${each} a ${unit}${atOnce}`,
    option,
  };
}
