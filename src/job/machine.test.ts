import { expect, test } from 'vitest'
import { machineDiagram, machineTables } from './diagram.ts'
import {
  allMoves,
  allStates,
  announces,
  can,
  finalStates,
  isFinal,
  isState,
  leadsTo,
  legalFrom,
  legalPairs,
  liveStates,
  moves,
} from './machine.ts'

test('every state is live or final, and none is both', () => {
  expect([...liveStates, ...finalStates].sort()).toEqual([...allStates].sort())
  expect(allStates.filter((state) => isFinal(state))).toEqual(finalStates)
})

test('nothing automatic leaves a final state: only a client may', () => {
  for (const name of allMoves)
    for (const state of finalStates) if (can(name, state)) expect(moves[name].by).toBe('client')
})

test('every live state can be left by a worker or the reaper, so no job waits for a client', () => {
  for (const state of liveStates)
    expect(
      allMoves.some((name) => can(name, state) && moves[name].by !== 'client'),
      state,
    ).toBe(true)
})

test('every live job can reach a final state', () => {
  for (const start of liveStates) {
    const reached = new Set<string>([start])
    for (let size = 0; size !== reached.size; ) {
      size = reached.size
      for (const [from, to] of legalPairs()) if (reached.has(from)) reached.add(to)
    }
    expect([...reached].some((state) => finalStates.some((final) => final === state))).toBe(true)
  }
})

test('every state can be reached from a submit', () => {
  const reached = new Set<string>(leadsTo('submit'))
  for (let size = 0; size !== reached.size; ) {
    size = reached.size
    for (const [from, to] of legalPairs()) if (reached.has(from)) reached.add(to)
  }
  expect([...reached].sort()).toEqual([...allStates].sort())
})

test('every move of a worker about an attempt carries its fence', () => {
  for (const name of allMoves) expect(moves[name].isFenced, name).toBe(moves[name].by === 'worker' && name !== 'claim')
})

test('every move but the claim is announced by an event of its own', () => {
  const announced = allMoves.map(announces).filter((type) => type !== null)
  expect(allMoves.filter((name) => announces(name) === null)).toEqual(['claim'])
  expect(new Set(announced).size).toBe(announced.length)
})

test('a word is a state only if the machine declares it', () => {
  expect(allStates.every(isState)).toBe(true)
  expect(['constructor', 'toString', 'Queued', '', '__proto__'].some(isState)).toBe(false)
})

test('the diagram and the tables name every state and every move', () => {
  for (const text of [machineDiagram(), machineTables()])
    for (const word of [...allStates, ...allMoves]) expect(text).toContain(word)
  for (const name of allMoves)
    for (const from of legalFrom(name))
      for (const to of leadsTo(name)) expect(machineDiagram()).toContain(`${from} --> ${to}: ${name}`)
})
