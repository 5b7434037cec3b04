/** The event traffic of the server as the page last read it, and the acts of its viewer. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Control } from '../../../src/inspector/calls/call-messages.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import type { EventForm, TrafficView } from '../../../src/inspector/traffic/traffic-messages.ts';
import { ask, control, Refused } from '../store/api.ts';
import { poll } from '../store/poll.ts';
import { known, say } from '../store/state.ts';

/** Milliseconds between two looks: deliveries and schedules also change without a record. */
const LOOK_MS = 2_000;

/** Undefined before the first look. */
export const traffic = signal<TrafficView | undefined>(undefined);

const { look, begin } = poll(async () => {
  const response = await ask('api/traffic');
  traffic.value = await response.json();
}, LOOK_MS);

/** Looks again and again while a component is shown. */
export function useLooks(): void {
  useEffect(begin, []);
}

/** True if this page may act. */
export const mayAct = (): boolean => known().hello?.control === true;

/** Carries out a command, and shows its outcome. @returns false if the server has rejected it */
export async function act(command: Control): Promise<boolean> {
  let done = true;
  try {
    say(await control(command));
  } catch (error) {
    done = false;
    say(reasonOf(error));
  }
  await look();
  return done;
}

/** The content of a delivery or a dead letter as text. */
export async function contentOf(ref: string): Promise<string> {
  try {
    const response = await ask(`api/content?ref=${encodeURIComponent(ref)}`);
    const { body }: { readonly body: Plain } = await response.json();
    return typeof body === 'string' ? body : JSON.stringify(body, undefined, 2);
  } catch (error) {
    return reasonOf(error);
  }
}

export async function formOf(name: string): Promise<EventForm> {
  const response = await ask(`api/event-form?name=${encodeURIComponent(name)}`);
  return response.json();
}

export function reasonOf(error: unknown): string {
  return error instanceof Refused ? error.message : 'The server cannot be reached.';
}

/** A date of the server, in milliseconds of its clock. */
export function clockOf(date: number): number {
  return date - (known().hello?.epoch ?? 0);
}
