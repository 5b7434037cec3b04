/** The smallest image, sound and icon that clients can show: a red pixel, an eighth of a second of a tone, a circle. */
import { Buffer } from 'node:buffer';

/** One red pixel, in base64. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';

/** 440 Hz for 125 ms, 8 bit at 8 kHz. */
export const WAV: Uint8Array = tone(440, 1_000, 8_000);

/** Part of the server's own description: a client needs no network to show it. */
export const ICON = {
  src: `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#b3261e"/></svg>')}`,
  mimeType: 'image/svg+xml',
  sizes: ['any'],
};

/** A RIFF file with one `fmt ` and one `data` chunk. */
function tone(hertz: number, samples: number, rate: number): Uint8Array {
  const file = Buffer.alloc(44 + samples);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(36 + samples, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20); // PCM
  file.writeUInt16LE(1, 22); // mono
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(rate, 28); // bytes in a second
  file.writeUInt16LE(1, 32); // bytes in a sample
  file.writeUInt16LE(8, 34); // bits in a sample
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(samples, 40);
  for (let i = 0; i < samples; i += 1)
    file[44 + i] = 128 + Math.round(100 * Math.sin((2 * Math.PI * hertz * i) / rate));
  return file;
}
