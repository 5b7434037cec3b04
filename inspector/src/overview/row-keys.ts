/** The arrow keys in a table: they move between the buttons of its rows. */
import type { TargetedKeyboardEvent } from 'preact';

export function rowKeys(event: TargetedKeyboardEvent<HTMLElement>): void {
  const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (by === 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>('.row-button')];
  const at = buttons.findIndex((button) => button.closest('tr')?.contains(document.activeElement));
  buttons[Math.max(0, Math.min(buttons.length - 1, at + by))]?.focus();
  event.preventDefault();
  event.stopPropagation();
}
