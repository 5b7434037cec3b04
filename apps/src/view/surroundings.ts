/** The window around a view: its timers, whether anybody sees it, its looks and its size. */
import type { HostContext } from './host-context.ts';

/** The parts of a window that a view uses. Tests of the protocol replace it. */
export interface Surroundings {
  /** Milliseconds since an arbitrary start. */
  now(): number;
  /** Runs `callback` once, `ms` milliseconds from now. @returns a function that cancels it */
  after(ms: number, callback: () => void): () => void;
  /** True if a person can see the view: it is scrolled into sight in a window that is not hidden. */
  isSeen(): boolean;
  /** Calls `listener` when a person may have turned to the view. @returns a function that stops it */
  onSeen(listener: () => void): () => void;
  /** Gives the document the theme, language and style variables of the host. */
  applyLooks(context: HostContext): void;
  /** Reports the size of the document, now and whenever it changes. @returns a function that stops it */
  observeSize(report: (width: number, height: number) => void): () => void;
}

/** The window that the view runs in. */
export function browserWindow(): Surroundings {
  const root = document.documentElement;
  let inSight = true;
  const seen = new Set<() => void>();
  const notify = (): void => {
    for (const listener of seen) listener();
  };
  // A host scrolls its conversation, and a frame out of sight is not hidden.
  new IntersectionObserver((entries) => {
    inSight = entries.at(-1)?.isIntersecting ?? true;
    if (inSight) notify();
  }).observe(root);
  document.addEventListener('visibilitychange', notify);
  addEventListener('focus', notify);
  return {
    now: () => performance.now(),
    after(ms, callback) {
      const timer = setTimeout(callback, ms);
      return () => clearTimeout(timer);
    },
    isSeen: () => inSight && !document.hidden,
    onSeen(listener) {
      seen.add(listener);
      return () => void seen.delete(listener);
    },
    applyLooks({ theme, styles, locale, safeAreaInsets }) {
      // On the body: on the root, a scheme that differs from the host's paints an opaque backdrop.
      if (theme) document.body.style.colorScheme = theme;
      // A host sets no other property of the document.
      for (const [name, value] of Object.entries(styles?.variables ?? {}))
        if (value && name.startsWith('--')) root.style.setProperty(name, value);
      for (const [side, value] of Object.entries(safeAreaInsets ?? {}))
        root.style.setProperty(`--safe-area-${side}`, `${value}px`);
      if (locale) {
        root.lang = locale;
        root.dir = RIGHT_TO_LEFT.test(locale) ? 'rtl' : 'ltr';
      }
    },
    observeSize(report) {
      let last = '';
      const measure = (): void => {
        // A page that is as high as its frame would report the frame to its host, which makes the frame so high, and so on.
        const { style } = root;
        const own = style.height;
        style.height = 'max-content';
        const { width, height } = root.getBoundingClientRect();
        style.height = own;
        const size = `${width} ${height}`;
        if (size === last) return;
        last = size;
        report(Math.ceil(width), Math.ceil(height));
      };
      // A host may show nothing of a frame without a size, and the browser renders nothing there: the first size waits for no frame.
      measure();
      const observer = new ResizeObserver(measure);
      observer.observe(root);
      return () => observer.disconnect();
    },
  };
}

/** Languages that are written from right to left. */
const RIGHT_TO_LEFT = /^(ar|ckb|dv|fa|he|iw|ps|sd|ug|ur|yi)\b/;
