import { type Duration, dayMs, durationMs } from '../errors/duration.ts'
import { type FinalState, finalStates } from './machine.ts'

/** How long jobs of a kind are kept after they end: one duration for all, or by final state. */
export type Keep = Duration | { readonly [State in FinalState]?: Duration }

/** The same in milliseconds. For missing states, the settings apply. */
export type KeptMs = { readonly [State in FinalState]?: number }

const longestMs = 3_650 * dayMs

/** The retention in milliseconds, by state; or what is wrong with it, as the end of a sentence that begins with the kind. */
export function keptMsOf(keep: Keep | undefined): KeptMs | undefined | string {
  if (keep === undefined) return undefined
  const given =
    typeof keep === 'object' && keep !== null ? keep : Object.fromEntries(finalStates.map((state) => [state, keep]))
  const kept: { [State in FinalState]?: number } = {}
  for (const [state, duration] of Object.entries(given)) {
    if (!finalStates.some((one) => one === state))
      return `has keep.${state}, but ${state} is not a final state; use ${finalStates.join(', ')}.`
    if (duration === undefined) continue
    const ms = durationMs(duration)
    if (ms === undefined || ms > longestMs)
      return `has keep ${JSON.stringify(duration)}; use milliseconds or a string such as "12h" or "30d", at most ten years.`
    kept[state as FinalState] = ms
  }
  return Object.keys(kept).length > 0 ? kept : undefined
}

/** The retention as it is stored; null if there is none. States have a fixed order, so that equal values are stored as equal texts. */
export function storedKeep(keep: KeptMs | undefined): string | null {
  if (!keep) return null
  return JSON.stringify(
    Object.fromEntries(finalStates.flatMap((state) => (keep[state] === undefined ? [] : [[state, keep[state]]]))),
  )
}
