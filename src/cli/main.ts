#!/usr/bin/env node
import { runCommand } from './program.ts'

// `holdfast jobs | head` closes the output early, which is not an error. Long-running commands are asked to end instead.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(0)
})
process.stderr.on('error', () => {})

const code = await runCommand(process.argv.slice(2))
// a write that failed is heard of by then; an output to which nothing was written need not be writable
await new Promise((resolve) => setImmediate(resolve))
const unwritten = [process.stdout, process.stderr].filter(({ writableLength }) => writableLength > 0)
await Promise.all(unwritten.map((out) => new Promise((resolve) => out.write('', resolve))))
// a module that was loaded for its definitions may keep connections open, but the command is done
process.exit(code)
