/** One setting: everything that types, environment names, CLI flags and the docs table derive from. */
export interface Setting {
  readonly type: 'text' | 'whole' | 'list' | 'flag'
  readonly default: string | number | boolean | readonly string[] | undefined
  readonly min?: number
  readonly max?: number
  readonly about: string
}
