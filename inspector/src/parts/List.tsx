/** A list of any length that renders only the rows in view. The arrow keys move in it. */
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface ListProps {
  readonly label: string;
  readonly role: 'tree' | 'listbox';
  readonly count: number;
  readonly height: number;
  /** The chosen row; -1 for none. */
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
  readonly row: (index: number) => ComponentChildren;
  /** Unique among lists: the ids of its rows begin with it. */
  readonly id: string;
  /** Handles other keys. @returns true if the key was handled */
  readonly onKey?: (event: TargetedKeyboardEvent<HTMLElement>, index: number) => boolean;
  /** Scrolls to the newest row until the reader scrolls away from it. */
  readonly follow?: boolean;
  readonly empty?: ComponentChildren;
  readonly class?: string;
}

const OVERSCAN = 6;

export function List(props: ListProps) {
  const { label, role, count, height, chosen, onChoose, row, id, onKey, follow, empty } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const pinned = useRef(true);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // Follows the newest row if it was in view.
  useLayoutEffect(() => {
    const element = box.current;
    if (element && follow && pinned.current) element.scrollTop = element.scrollHeight;
  }, [count, follow]);

  // Scrolls to a row that was chosen elsewhere.
  useEffect(() => {
    const element = box.current;
    if (!element || chosen < 0) return;
    const top = chosen * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight)
      element.scrollTop = top + height - element.clientHeight;
  }, [chosen, height]);

  const keys = (event: TargetedKeyboardEvent<HTMLElement>): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (onKey?.(event, chosen)) return stop(event);
    const page = Math.max(1, Math.floor(view.height / height) - 1);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: chosen + 1,
      ArrowUp: chosen < 0 ? count - 1 : chosen - 1,
      Home: 0,
      End: count - 1,
      PageDown: chosen + page,
      PageUp: chosen - page,
    };
    const to = moves[event.key];
    if (to === undefined || count === 0) return;
    onChoose(Math.max(0, Math.min(count - 1, to)));
    stop(event);
  };

  const first = Math.max(0, Math.floor(view.top / height) - OVERSCAN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / height) + OVERSCAN);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it is a tree or a list, as its role says.
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: the same.
    <div
      class={`list ${props.class ?? ''}`}
      ref={box}
      role={role}
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={chosen >= first && chosen < last ? `${id}-${chosen}` : undefined}
      onKeyDown={keys}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        pinned.current = scrollTop + clientHeight >= scrollHeight - height;
        setView({ top: scrollTop, height: clientHeight });
      }}
    >
      {count === 0 ? (
        // biome-ignore lint/a11y/useAriaPropsSupportedByRole: it is one of a tree or a list.
        <div class="empty" role={role === 'tree' ? 'treeitem' : 'option'} aria-selected={false}>
          {empty}
        </div>
      ) : (
        <div class="list-all" role="presentation" style={{ height: `${count * height}px` }}>
          <div class="list-view" role="presentation" style={{ transform: `translateY(${first * height}px)` }}>
            {Array.from({ length: Math.max(0, last - first) }, (_, offset) => row(first + offset))}
          </div>
        </div>
      )}
    </div>
  );
}

function stop(event: Event): void {
  event.preventDefault();
  event.stopPropagation();
}
