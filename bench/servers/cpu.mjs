/** Tells the benchmark how much processor time this process has used, when it asks over IPC. */
process.on('message', () => process.send?.(process.cpuUsage()));
