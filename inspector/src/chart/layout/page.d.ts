/** Types of the page's bundler and of newer browsers that TypeScript's libraries lack. */
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
