/** What the page's builder understands as an import, and TypeScript does not. */
declare module '*.css';
