/** The files with which a project becomes a container: the recipe and what stays out of it. Pure. */

/**
 * The files by their names. The image has the production dependencies, an unprivileged user, a health check, and its state in a volume.
 *
 * @param program the program in the project, such as `server.ts`
 * @param node the major version of Node of the image
 * @example containerFiles('server.ts', 22).Dockerfile
 */
export function containerFiles(program: string, node: number): Readonly<Record<string, string>> {
  const command = [
    ...['node_modules/.bin/troupe', 'serve', program, '--http', '0.0.0.0:3000', '--data', '/data', '--log', 'json'],
  ];
  return {
    Dockerfile: `FROM node:${node}-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts
COPY . .

FROM node:${node}-slim
ENV NODE_ENV=production
WORKDIR /app
# The code belongs to root, so that the server cannot change it.
COPY --from=build /app .
RUN mkdir /data && chown node:node /data
VOLUME /data
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \\
  CMD ["node", "-e", "fetch('http://127.0.0.1:3000/healthz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Without a shell, so that SIGTERM reaches the server.
CMD ${JSON.stringify(command).replaceAll(',', ', ')}
`,
    '.dockerignore': ['.git', '.env*', '.data', 'data', 'node_modules', '*.db', '*.mcpb', ''].join('\n'),
  };
}
