import type { ReadStream, WriteStream } from 'node:tty'
import { forTerminal } from './terminal.ts'

/** A full-screen terminal. */
export interface Screen {
  /** Shows as many of these lines as there is room for. */
  draw(lines: readonly string[]): void
  /** Restores the terminal. May be called twice. */
  leave(): void
}

const control = '\u001b['
const enter = `${control}?1049h${control}?25l${control}?7l`
const exit = `${control}?7h${control}?25h${control}?1049l`

/** What a screen needs: the terminal, and listeners for keys and resizing. */
export interface ScreenOptions {
  input: ReadStream
  output: WriteStream
  onKey: (key: string) => void
  onResize: () => void
}

/** Takes over the terminal: its alternate screen, without a cursor, and raw keys. */
export function openScreen({ input, output, onKey, onResize }: ScreenOptions): Screen {
  const hear = (keys: Buffer) => onKey(keys.toString())
  let isOpen = true

  function leave(): void {
    if (!isOpen) return
    isOpen = false
    process.off('exit', leave)
    output.off('resize', onResize)
    input.off('data', hear)
    if (input.isTTY) input.setRawMode(false)
    input.pause()
    output.write(exit)
  }

  output.write(enter)
  output.on('resize', onResize)
  // an unexpected exit must not leave a terminal without a cursor
  process.on('exit', leave)
  if (input.isTTY) input.setRawMode(true)
  input.on('data', hear)
  return {
    draw(lines) {
      if (!isOpen) return
      const room = output.rows || lines.length
      const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), '…']
      // each line clears the rest of its row, and the last one everything below, so nothing flickers
      output.write(`${control}H${shown.map((line) => `${forTerminal(line)}${control}K`).join('\r\n')}${control}J`)
    },
    leave,
  }
}
