/** What the page's builder and newer browsers have, and TypeScript's libraries do not tell of. */
declare module '*?worker&url' {
  const url: string;
  export default url;
}

declare var trustedTypes:
  | {
      createPolicy(
        name: string,
        rules: { readonly createScriptURL: (url: string) => string },
      ): { createScriptURL(url: string): string };
    }
  | undefined;
