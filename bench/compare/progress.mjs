// Progress: a bar on a terminal, otherwise a line per measure and round.

/** Shows the progress of a long benchmark on standard error. */
export function makeProgress(out = process.stderr) {
  const startedMs = performance.now()
  let told = ''
  return {
    at({ done, total, measure, round, rounds, title }) {
      const line = `${measure}, round ${round} of ${rounds}`
      if (out.isTTY) return draw(out, { done, total, text: `${line}: ${title}`, ms: performance.now() - startedMs })
      if (line !== told) out.write(`${line} (${done} of ${total} runs done)\n`)
      told = line
    },
    note(line) {
      out.write(`${out.isTTY ? '\r\u001b[K' : ''}${line}\n`)
    },
    end() {
      if (out.isTTY) out.write('\r\u001b[K')
    },
  }
}

function draw(out, { done, total, text, ms }) {
  const width = 30
  const filled = Math.round((done / Math.max(1, total)) * width)
  const bar = `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`
  const minutes = `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')}`
  const line = `${bar} ${done}/${total} ${minutes} ${text}`
  out.write(`\r\u001b[K${line.slice(0, Math.max(20, (out.columns ?? 80) - 1))}`)
}
