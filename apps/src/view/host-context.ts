/** The surroundings that a host describes to its views (MCP Apps 2026-01-26, "Host Context"). Types only. */

export type DisplayMode = 'inline' | 'fullscreen' | 'pip';

export interface HostContext {
  readonly theme?: 'light' | 'dark';
  readonly styles?: { readonly variables?: Readonly<Record<string, string | undefined>> };
  readonly displayMode?: DisplayMode;
  readonly availableDisplayModes?: readonly DisplayMode[];
  /** In CSS pixels. Each axis is fixed (`width`, `height`) or has a maximum. */
  readonly containerDimensions?: {
    readonly width?: number;
    readonly height?: number;
    readonly maxWidth?: number;
    readonly maxHeight?: number;
  };
  /** A BCP 47 tag, such as `de-CH`. */
  readonly locale?: string;
  /** An IANA name, such as `Europe/Zurich`. */
  readonly timeZone?: string;
  readonly platform?: 'web' | 'desktop' | 'mobile';
  /** In CSS pixels. The document has them as `--safe-area-top` and so on. */
  readonly safeAreaInsets?: Readonly<Record<'top' | 'right' | 'bottom' | 'left', number>>;
  readonly toolInfo?: { readonly id?: string | number; readonly tool: { readonly name: string } };
}

/** Capabilities of a host. An absent one may work all the same: some hosts declare nothing. */
export interface HostCapabilities {
  readonly openLinks?: object;
  readonly serverTools?: object;
  readonly serverResources?: object;
  readonly logging?: object;
  readonly message?: object;
  readonly updateModelContext?: object;
}

/** The host of a view: who it is, and what it said last about its surroundings. */
export interface Host extends HostContext {
  readonly name: string;
  readonly version: string;
  readonly capabilities: HostCapabilities;
}
