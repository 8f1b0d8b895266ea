/** Inputs up to this many bytes are stored in the row of their job. */
export const smallBytes = 500

/** Inputs up to this many bytes are also stored in the row that a claim takes. */
export const tinyBytes = 120

/**
 * The type of a value after it was stored as JSON and read back: a Date becomes a string, a method disappears. An undefined field is
 * omitted, and an undefined array element becomes null.
 */
export type Stored<T> = T extends { toJSON(): infer J }
  ? Stored<J>
  : T extends string | number | boolean | null
    ? T
    : T extends void
      ? null
      : T extends readonly unknown[]
        ? { [I in keyof T]: Stored<T[I]> }
        : T extends object
          ? Flat<
              { [K in keyof T as Fate<T[K]> extends 'stays' ? K : never]: Stored<T[K]> } & {
                [K in keyof T as Fate<T[K]> extends 'optional' ? K : never]?: Stored<Exclude<T[K], undefined>>
              }
            >
          : unknown

/** What happens to a field: it stays, may be missing, or is gone. */
type Fate<V> = unknown extends V
  ? 'stays'
  : [V] extends [((...args: never[]) => unknown) | undefined]
    ? 'gone'
    : undefined extends V
      ? 'optional'
      : 'stays'

/** One object type instead of an intersection. */
type Flat<T> = { [K in keyof T]: T[K] }
