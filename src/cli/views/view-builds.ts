/** The pages of the views of a program under `troupe dev`: bundled when the program names them, and again when they change. */
import { relative } from 'node:path';
import { messageOf } from '../../core/protocol/json.ts';
import { say } from '../usage.ts';

interface Build {
  text: string;
  files: ReadonlySet<string>;
  /** Counts the bundlings, so that only the latest one is used. */
  attempt: number;
}

interface ViewBuildsOptions {
  /** Receives the files of a view, whose changes lead to {@link ViewBuilds.changed}. */
  watch(file: string): void;
  /** A page has changed. */
  built(source: string): void;
}

/** The page of a view until it is bundled. */
const PENDING = '<!doctype html><title>Bundling</title><p>This view is being bundled. Open it again in a moment.</p>';

export class ViewBuilds {
  readonly #options: ViewBuildsOptions;
  readonly #builds = new Map<string, Build>();

  constructor(options: ViewBuildsOptions) {
    this.#options = options;
  }

  /** The page of a script. Its first use begins its bundling. */
  page(source: string): string {
    const known = this.#builds.get(source);
    if (known) return known.text;
    this.#builds.set(source, { text: PENDING, files: new Set([source]), attempt: 0 });
    this.#options.watch(source);
    void this.#bundle(source);
    return PENDING;
  }

  /** True for a file of a view. */
  has(file: string): boolean {
    return [...this.#builds.values()].some(({ files }) => files.has(file));
  }

  /** Bundles the views again that contain one of these files. */
  changed(files: ReadonlySet<string>): void {
    for (const [source, build] of this.#builds)
      if ([...files].some((file) => build.files.has(file))) void this.#bundle(source);
  }

  /** Never rejects: a view that cannot be bundled keeps its last page. */
  async #bundle(source: string): Promise<void> {
    const build = this.#builds.get(source);
    if (!build) return;
    build.attempt += 1;
    const { attempt } = build;
    try {
      const { bundleView } = await import('./bundle-view.ts');
      const { html, files } = await bundleView(source, 'development');
      if (build.attempt !== attempt) return;
      build.files = new Set([source, ...files]);
      for (const file of files) this.#options.watch(file);
      if (build.text === html) return;
      build.text = html;
      this.#options.built(source);
    } catch (error) {
      say(`troupe dev: cannot bundle ${relative(process.cwd(), source)}: ${messageOf(error)}`);
    }
  }
}
