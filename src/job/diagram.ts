import { allMoves, allStates, finalStates, leadsTo, legalFrom, moves, states } from './machine.ts'

/** The state machine as a Mermaid diagram, for the docs. */
export function machineDiagram(): string {
  const arrows = allMoves.flatMap((name) => {
    const sources = legalFrom(name).length === 0 ? ['[*]'] : legalFrom(name)
    return sources.flatMap((from) => leadsTo(name).map((to) => `  ${from} --> ${to}: ${name}`))
  })
  return ['stateDiagram-v2', ...arrows, ...finalStates.map((state) => `  ${state} --> [*]`)].join('\n')
}

/** The states and the moves as two Markdown tables, for the docs. */
export function machineTables(): string {
  const stateRows = allStates.map(
    (state) => `| \`${state}\` | ${states[state].isFinal ? 'yes' : 'no'} | ${states[state].meaning} |`,
  )
  const moveRows = allMoves.map((name) => {
    const { by, isFenced, announces, note } = moves[name]
    const from = legalFrom(name).join(', ') || '–'
    return `| ${name} | ${from} → ${leadsTo(name).join(' / ')} | ${by} | ${isFenced ? 'yes' : 'no'} | ${announces ?? '–'} | ${note} |`
  })
  return [
    '| state | final | meaning |',
    '|---|---|---|',
    ...stateRows,
    '',
    '| move | from → to | by | fenced | event | note |',
    '|---|---|---|---|---|---|',
    ...moveRows,
  ].join('\n')
}
