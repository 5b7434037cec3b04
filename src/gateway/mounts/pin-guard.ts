/** Compares each catalogue of a mount with its pins: reports the differences, or holds what is not approved. */
import { messageOf } from '../../core/protocol/json.ts';
import type { PinRecord } from './pin-record.ts';
import {
  approvePins,
  compareWithPins,
  describePinChange,
  isHeld,
  NO_PINS,
  type PinChange,
  type Pins,
  pinsOf,
} from './pins.ts';
import type { UpstreamCatalogue } from './upstream-catalogue.ts';

/** A catalogue, and the part of it that may be offered. */
export interface JudgedCatalogue {
  /** As the upstream sent it. */
  readonly catalogue: UpstreamCatalogue;
  readonly offered: UpstreamCatalogue;
  /** One sentence for each difference from the pins. */
  readonly problems: readonly string[];
}

interface PinGuardOptions {
  readonly mode: 'off' | 'warn' | 'hold';
  readonly record: PinRecord;
  /** The advice after a difference. */
  readonly advice: string;
}

/** Longest list of differences in one report. */
const MAX_REPORTED = 20;

export class PinGuard {
  readonly #options: PinGuardOptions;

  constructor(options: PinGuardOptions) {
    this.#options = options;
  }

  get mode(): PinGuardOptions['mode'] {
    return this.#options.mode;
  }

  /** Compares a catalogue with the pins. With `warn`, the first catalogue of an upstream becomes its pins. Never rejects. */
  async judge(catalogue: UpstreamCatalogue): Promise<JudgedCatalogue> {
    const { mode, record, advice } = this.#options;
    if (mode === 'off') return { catalogue, offered: catalogue, problems: [] };
    const holds = mode === 'hold';
    const now = pinsOf(catalogue);
    let pins: Pins | undefined;
    try {
      pins = await record.read();
      if (!pins && !holds) {
        await record.write(now);
        pins = now;
      }
    } catch (error) {
      const effect = holds ? 'its tools, prompts and events are held' : 'its definitions are not compared';
      const problem = `the pins cannot be read or written, so ${effect}: ${messageOf(error)}`;
      return { catalogue, offered: holds ? without(catalogue, NO_PINS) : catalogue, problems: [problem] };
    }
    const changes = compareWithPins(pins ?? NO_PINS, now);
    if (changes.length === 0) return { catalogue, offered: catalogue, problems: [] };
    const held = changes.filter(isHeld);
    const problems = [
      ...reported(pins ? changes : [], holds),
      pins ? advice : `all ${held.length} tools, prompts and events are held until they are approved`,
    ];
    return { catalogue, offered: holds ? without(catalogue, approvedOf(now, held)) : catalogue, problems };
  }

  /**
   * Approves the definitions of a catalogue.
   *
   * @param element the tool, prompt or event type, by its name upstream. Default: all
   * @returns one sentence for each difference that is approved
   * @throws {Error} for an unknown name, or if the pins cannot be read or written
   */
  async approve(catalogue: UpstreamCatalogue, element: string | undefined): Promise<readonly string[]> {
    const { record } = this.#options;
    const now = pinsOf(catalogue);
    const pins = (await record.read()) ?? NO_PINS;
    const approved = approvePins(pins, now, element);
    if (!approved) throw new Error(`there is no tool, prompt or event ${element}`);
    await record.write(approved);
    const changes = compareWithPins(pins, now);
    return changes.filter(({ name }) => element === undefined || name === element).map(describePinChange);
  }
}

function reported(changes: readonly PinChange[], holds: boolean): readonly string[] {
  const lines = changes
    .slice(0, MAX_REPORTED)
    .map((change) => `${describePinChange(change)}${holds && isHeld(change) ? ', held until it is approved' : ''}`);
  const more = changes.length - lines.length;
  return more > 0 ? [...lines, `${more} more differences from the pins`] : lines;
}

/** The pins without those of held elements. */
function approvedOf({ tools, prompts, events }: Pins, held: readonly PinChange[]): Pins {
  const isFree = (of: PinChange['of']) => (pin: { readonly name: string }) =>
    !held.some((change) => change.of === of && change.name === pin.name);
  return {
    tools: tools.filter(isFree('tool')),
    prompts: prompts.filter(isFree('prompt')),
    events: events.filter(isFree('event')),
  };
}

/** The catalogue with those tools, prompts and event types only that are approved. Resources have no pins. */
function without(catalogue: UpstreamCatalogue, approved: Pins): UpstreamCatalogue {
  const tools = new Set(approved.tools.map(({ name }) => name));
  const prompts = new Set(approved.prompts.map(({ name }) => name));
  const events = new Set(approved.events.map(({ name }) => name));
  return {
    ...catalogue,
    tools: catalogue.tools.filter(({ name }) => tools.has(name)),
    prompts: catalogue.prompts.filter(({ name }) => prompts.has(name)),
    events: catalogue.events?.filter(({ name }) => events.has(name)),
  };
}
