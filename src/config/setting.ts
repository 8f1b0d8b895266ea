/** One setting: everything that types, environment names, CLI flags and the docs table derive from. */
export interface Setting {
  /** A `duration` is a whole number of milliseconds, or a string with a unit, such as `30d`. */
  readonly type: 'text' | 'whole' | 'duration' | 'list' | 'flag'
  readonly default: string | number | boolean | readonly string[] | undefined
  readonly min?: number
  readonly max?: number
  readonly about: string
}
