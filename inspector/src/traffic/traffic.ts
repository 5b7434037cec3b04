/** The event traffic of the server as the page last read it, and the acts of its viewer. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Control } from '../../../src/inspector/calls/call-messages.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import type { EventForm, TrafficView } from '../../../src/inspector/traffic/traffic-messages.ts';
import { ask, control, Refused } from '../store/api.ts';
import { known, say } from '../store/state.ts';

/** Milliseconds between two looks: deliveries and schedules also change without a record. */
const LOOK_MS = 2_000;

/** Undefined before the first look. */
export const traffic = signal<TrafficView | undefined>(undefined);

/** A look that has no answer yet: a slow server gets no second one. */
let looking: Promise<void> | undefined;

export function look(): Promise<void> {
  looking ??= read().finally(() => {
    looking = undefined;
  });
  return looking;
}

async function read(): Promise<void> {
  if (document.hidden) return;
  try {
    const response = await ask('api/traffic');
    traffic.value = await response.json();
  } catch {
    // The next look may succeed.
  }
}

/** Looks again and again while a component is shown. */
export function useLooks(): void {
  useEffect(() => {
    void look();
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
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
