import type { ReadStream, WriteStream } from 'node:tty'
import { forTerminal } from './terminal.ts'

/** A terminal that is drawn upon as a whole. */
export interface Screen {
  /** Shows these lines, and as many of them as there is room for. */
  draw(lines: readonly string[]): void
  /** Gives the terminal back as it was. Twice-safe. */
  leave(): void
}

const control = '\u001b['
const enter = `${control}?1049h${control}?25l${control}?7l`
const exit = `${control}?7h${control}?25h${control}?1049l`

/** What a screen needs: the terminal, and who hears of keys and of a new size. */
export interface ScreenOptions {
  input: ReadStream
  output: WriteStream
  onKey: (key: string) => void
  onResize: () => void
}

/** Takes the terminal over: another page of it, without a cursor, and keys one by one. */
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
  // a way out that nobody thought of must not leave a terminal without a cursor
  process.on('exit', leave)
  if (input.isTTY) input.setRawMode(true)
  input.on('data', hear)
  return {
    draw(lines) {
      if (!isOpen) return
      const room = output.rows || lines.length
      const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), '…']
      // each line clears what stood behind it, and the end what stood below: nothing flickers
      output.write(`${control}H${shown.map((line) => `${forTerminal(line)}${control}K`).join('\r\n')}${control}J`)
    },
    leave,
  }
}
