import { mostAhead } from './facts.ts'

/** How many jobs are ahead of another, in words. */
export function aheadCount(ahead: number): string {
  return ahead >= mostAhead ? `at least ${mostAhead.toLocaleString('en')}` : String(ahead)
}

/** The same as the end of a sentence. */
export function formatAhead(ahead: number | null | undefined): string {
  if (!ahead) return ''
  return `; ${aheadCount(ahead)} due ${ahead === 1 ? 'job is' : 'jobs are'} ahead of it`
}
