/** The names that a page of an upstream may use, as the script in it gets them. Types only. */

export interface PageNames {
  /** The mount of the page's upstream. */
  readonly mount: string;
  /** The upstream's name of each tool that its views may call → the name under which this server offers it. */
  readonly tools: Readonly<Record<string, string>>;
  /** True for a mount that offers URIs unchanged. Its pages read by `mount+uri`, so that they reach no resource of another. */
  readonly plain: boolean;
}
