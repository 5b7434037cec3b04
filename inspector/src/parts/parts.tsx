/** Shared components: buttons, sections, links to actors, times and countdowns. */
import type { ComponentChildren } from 'preact';
import { known, now, select, selection } from '../store/state.ts';
import { Icon, type IconName } from './icons.tsx';
import { countdown, short, wallClock } from './time.ts';

export interface ToolProps {
  readonly icon: IconName;
  readonly label: string;
  /** The keyboard shortcut. */
  readonly hint?: string;
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  readonly onClick: () => void;
  readonly children?: ComponentChildren;
}

export function Tool({ icon, label, hint, pressed, disabled, onClick, children }: ToolProps) {
  return (
    <button
      type="button"
      class="tool"
      title={hint === undefined ? label : `${label} (${hint})`}
      aria-label={children === undefined ? label : undefined}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
      {children}
    </button>
  );
}

export interface SectionProps {
  readonly title: string;
  readonly beside?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Section({ title, beside, children }: SectionProps) {
  return (
    <section class="section">
      <h3>
        {title}
        {beside === undefined ? null : <span class="beside">{beside}</span>}
      </h3>
      {children}
    </section>
  );
}

/** The name of an actor as a link that selects it. */
export function ActorLink({ address, most = 28 }: { readonly address: string; readonly most?: number }) {
  const line = known().actor(address);
  const name = line?.label ?? address;
  if (!line) return <span>{name}</span>;
  return (
    <button
      type="button"
      class="link"
      title={address}
      aria-current={selection.value.actor === address ? 'true' : undefined}
      onClick={() => select({ actor: address })}
    >
      {short(name, most)}
    </button>
  );
}

/** A time of the server's clock as wall-clock time. */
export function At({ at, precise = true }: { readonly at: number; readonly precise?: boolean }) {
  const time = (known().hello?.epoch ?? 0) + at;
  return (
    <time dateTime={new Date(time).toISOString()} title={new Date(time).toISOString()}>
      {wallClock(time, precise)}
    </time>
  );
}

/** The remaining time until a deadline, with a bar for its share. */
export function Left({ until, lasts }: { readonly until: number; readonly lasts?: number }) {
  const left = until - now.value;
  const part = lasts === undefined || lasts <= 0 ? undefined : Math.max(0, Math.min(1, left / lasts));
  return (
    <span class={`left${left < 10_000 ? ' soon' : ''}`}>
      <span class="left-time">{countdown(left)}</span>
      {part === undefined ? null : (
        <span class="left-bar" aria-hidden="true">
          <span style={{ width: `${part * 100}%` }} />
        </span>
      )}
    </span>
  );
}

export async function copy(text: string, done: (text: string) => void): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    done('Copied.');
  } catch {
    done('The browser does not let this page write to the clipboard.');
  }
}

/** Downloads a file. */
export function save(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
